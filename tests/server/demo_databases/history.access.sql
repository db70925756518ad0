-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- Ten years of access: several grantors, odd names, owners that lost what they had, and what no manifest can say.

ALTER ROLE hist_owner LOGIN CREATEROLE;
CREATE ROLE "a b" LOGIN;
CREATE ROLE "it's" LOGIN;
CREATE ROLE "say ""hi""";
CREATE ROLE "*" LOGIN;
CREATE ROLE "[a-z]?";
CREATE ROLE "yes";
CREATE ROLE "null";
CREATE ROLE "1e3";
CREATE ROLE "0x1F";
CREATE ROLE "2026-01-01";
CREATE ROLE "12:30";
CREATE ROLE "- dash";
CREATE ROLE "a: b #c";
CREATE ROLE "&anchor";
CREATE ROLE "back\slash\n";
CREATE ROLE " blanks ";
CREATE ROLE "pg-like";
CREATE ROLE pgbouncer LOGIN;
CREATE ROLE "A name that takes all of the sixty-three bytes that there are..";
CREATE ROLE "Łucja" LOGIN;
CREATE ROLE reader;
CREATE ROLE writer;
CREATE ROLE lead;
CREATE ROLE deputy;
CREATE ROLE last_one;
CREATE ROLE boss SUPERUSER;
CREATE ROLE everything LOGIN SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS NOINHERIT CONNECTION LIMIT 0
    VALID UNTIL '2031-12-31 23:59:59.123456+05:30' PASSWORD 'not a real one';
CREATE ROLE for_ever LOGIN VALID UNTIL 'infinity';
CREATE ROLE expired LOGIN VALID UNTIL 'epoch' CONNECTION LIMIT 7;
-- No manifest can say these.
CREATE ROLE long_gone LOGIN VALID UNTIL '-infinity';
CREATE ROLE "Public";
CREATE ROLE "NONE" LOGIN;
CREATE ROLE U&"tab\0009in it";

COMMENT ON ROLE "a b" IS '  begins with blanks, ends with them  ';
COMMENT ON ROLE "it's" IS E'two\nlines: "quoted" and ''quoted'', # no comment\n\n---\n...\n';
COMMENT ON ROLE reader IS E'\ttab, back\\slash, %s, {braces}, \U0001F600, łódź';
COMMENT ON ROLE writer IS 'yes';
COMMENT ON ROLE lead IS '123';
ALTER ROLE reader SET search_path = "$user", public, "My Schema", "with, comma", "say ""hi""";
ALTER ROLE reader SET "my.custom" = 'a=b, c';
ALTER ROLE reader SET "My.Mixed" = 'yes';
ALTER ROLE reader SET application_name = E'two "words"\\ and ''quotes''';
ALTER ROLE reader SET default_transaction_read_only = on;
ALTER ROLE reader SET statement_timeout = 60000;
ALTER ROLE writer SET search_path = '';
ALTER ROLE writer SET DateStyle = 'ISO, DMY';
ALTER ROLE writer SET temp_tablespaces = pg_default, "another one";
ALTER ROLE writer SET application_name = '';
ALTER ROLE writer SET default_tablespace = 'pg_default';
ALTER ROLE reader IN DATABASE :database SET work_mem = '8MB';

GRANT reader TO writer, "a b", "Łucja", pgloader_pg, "*", "yes";
GRANT writer TO lead WITH ADMIN OPTION;
GRANT lead TO deputy WITH ADMIN OPTION;
GRANT reader TO lead WITH ADMIN OPTION;
GRANT reader TO deputy WITH ADMIN OPTION;
SET ROLE lead;
GRANT reader TO last_one;
RESET ROLE;
SET ROLE deputy;
GRANT reader TO pgbouncer;
GRANT writer TO "- dash";
RESET ROLE;
GRANT pg_read_all_data TO "1e3" WITH ADMIN OPTION;
GRANT pg_monitor TO reader;
GRANT boss TO "a b";
GRANT postgres TO boss;
GRANT reader TO "Public", "NONE";
GRANT "NONE" TO "say ""hi""";
GRANT hist_owner TO "Old Owner";
-- next
-- from 16
GRANT lead TO "null" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
GRANT lead TO "0x1F" WITH INHERIT FALSE;
GRANT lead TO "12:30" WITH SET FALSE, INHERIT TRUE;
GRANT reader TO deputy WITH SET FALSE GRANTED BY lead;
GRANT reader TO "null" WITH ADMIN FALSE, INHERIT FALSE, SET TRUE GRANTED BY lead;
GRANT reader TO "null" WITH ADMIN FALSE, INHERIT TRUE, SET FALSE GRANTED BY deputy;
-- Making a role as hist_owner gives it an automatic membership.
SET ROLE hist_owner;
CREATE ROLE made_by_owner;
SET createrole_self_grant = 'set, inherit';
CREATE ROLE made_and_kept;
RESET createrole_self_grant;
RESET ROLE;
-- end
-- next
ALTER SCHEMA "on" OWNER TO pgloader_pg;
ALTER SCHEMA "My Schema" OWNER TO "łódź";
ALTER SCHEMA empty_one OWNER TO "Łucja";
GRANT USAGE ON SCHEMA hist, "My Schema", "on", "schema ""quoted"": it's #1" TO reader;
GRANT USAGE, CREATE ON SCHEMA hist TO lead WITH GRANT OPTION;
SET ROLE lead;
GRANT CREATE ON SCHEMA hist TO writer;
RESET ROLE;
GRANT CREATE ON SCHEMA empty_one TO PUBLIC;
GRANT ALL ON SCHEMA public TO PUBLIC;

-- Chains of grantors, some of which hang in the air by now.
GRANT SELECT, INSERT ON hist.chain TO lead WITH GRANT OPTION;
GRANT USAGE ON SCHEMA hist TO deputy, last_one;
SET ROLE lead;
GRANT SELECT ON hist.chain TO deputy WITH GRANT OPTION;
GRANT SELECT (a), INSERT (b) ON hist.chain TO writer;
SET ROLE deputy;
GRANT SELECT ON hist.chain TO last_one WITH GRANT OPTION;
SET ROLE last_one;
GRANT SELECT ON hist.chain TO PUBLIC;
GRANT SELECT ON hist.chain TO reader;
RESET ROLE;
GRANT SELECT ON hist.chain TO reader, writer;
GRANT UPDATE ON hist.chain TO "Public", "NONE" WITH GRANT OPTION;
GRANT ALL ON hist.chain_of_strangers TO "*" WITH GRANT OPTION;
SET ROLE "*";
GRANT UPDATE (b) ON hist.chain_of_strangers TO "it's";
GRANT DELETE ON hist.chain_of_strangers TO "[a-z]?", "back\slash\n", " blanks ", "&anchor";
RESET ROLE;

GRANT SELECT ON ALL TABLES IN SCHEMA hist TO reader;
GRANT INSERT ON hist.t, hist.u TO writer;
GRANT INSERT ON hist.t TO writer WITH GRANT OPTION;
GRANT ALL ON hist.ft TO "2026-01-01";
GRANT UPDATE (b) ON hist.ft TO "A name that takes all of the sixty-three bytes that there are..";
GRANT SELECT (a, "odd column", "Größe"), UPDATE (a) ON hist.t TO "say ""hi""";
GRANT SELECT (a) ON hist.v, hist.m TO "say ""hi""" WITH GRANT OPTION;
GRANT SELECT ON hist.with_public TO PUBLIC;
GRANT UPDATE (b) ON hist.with_public TO PUBLIC;
REVOKE ALL ON hist.owner_lost_all FROM hist_owner;
REVOKE DELETE, TRUNCATE ON hist.owner_lost_one FROM "Old Owner";
REVOKE ALL ON hist.owner_kept_column FROM hist_owner;
GRANT SELECT (a), UPDATE (a) ON hist.owner_kept_column TO hist_owner;
REVOKE ALL ON hist.empty_acl FROM hist_owner, reader;
GRANT SELECT ON hist."Case" TO "pg-like", pgbouncer, pgloader_pg;
GRANT UPDATE ON hist."case" TO "pg-like";
REVOKE ALL ON hist.v FROM hist_owner;
REVOKE USAGE ON SEQUENCE hist.s FROM hist_owner;
GRANT USAGE ON SEQUENCE hist.s, hist.u_id_seq TO writer WITH GRANT OPTION;
GRANT SELECT ON SEQUENCE hist.s2 TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA "My Schema" TO "Łucja";
GRANT INSERT ON nameless."*" TO "Łucja";
GRANT SELECT ON "none of your {{ business }}".t TO reader;
GRANT UPDATE ("x,y") ON "My Schema"."a.b" TO "yes";
GRANT INSERT ("true", "1e3") ON "on"."null" TO "null";
GRANT ALL ON "schema ""quoted"": it's #1"."t""'`$" TO "a: b #c";
GRANT SELECT ON "schema ""quoted"": it's #1"."a name of exactly sixty-three bytes, which is all that there is" TO "A name that takes all of the sixty-three bytes that there are..";

REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA hist FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hist.f(hist.pair, text[]), hist."odd, ""name"""(double precision, int) TO reader;
GRANT EXECUTE ON FUNCTION hist.f("My Schema"."Strange, Type", "char", char, timestamptz, interval, numeric, bit varying) TO writer WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION hist."F of"(int) TO "yes";
GRANT EXECUTE ON PROCEDURE hist.p(int, text) TO "12:30";
GRANT EXECUTE ON FUNCTION hist.percentile(float8, float8), hist.rows(), hist.total(int), hist.win() TO reader;
GRANT EXECUTE ON FUNCTION hist.total(int) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION "on".f(hist.t, hist.t[], hist.mood[]) FROM PUBLIC, hist_owner;
GRANT EXECUTE ON FUNCTION "on".f(hist.t, hist.t[], hist.mood[]) TO "it's";

REVOKE USAGE ON TYPE hist.mood, hist.pair, hist.span, hist.positive, "My Schema"."Strange, Type" FROM PUBLIC;
GRANT USAGE ON TYPE hist.mood TO reader;
GRANT USAGE ON TYPE hist.pair, hist.positive TO writer WITH GRANT OPTION;
GRANT USAGE ON DOMAIN "My Schema"."Strange, Type" TO "Łucja";
-- Nobody means to give any on the row type of a table.
GRANT USAGE ON TYPE hist.row_type TO writer;

REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
GRANT USAGE ON LANGUAGE plpgsql TO hist_owner;
GRANT USAGE ON LANGUAGE sql TO writer WITH GRANT OPTION;
GRANT USAGE ON LANGUAGE "pl odd" TO reader;
GRANT USAGE ON FOREIGN DATA WRAPPER "odd wrapper" TO reader WITH GRANT OPTION;
GRANT USAGE ON FOREIGN DATA WRAPPER file_fdw TO writer;
GRANT USAGE ON FOREIGN SERVER "far away", nearby TO writer;
REVOKE USAGE ON FOREIGN SERVER nearby FROM hist_owner;
GRANT SELECT ON LARGE OBJECT 424242, 4294967290 TO reader;
GRANT ALL ON LARGE OBJECT 424243 TO writer WITH GRANT OPTION;
GRANT SELECT ON LARGE OBJECT 424244 TO PUBLIC;
GRANT CREATE ON TABLESPACE pg_default TO writer WITH GRANT OPTION;
GRANT CREATE ON TABLESPACE "another one" TO reader;
REVOKE ALL ON DATABASE :database FROM PUBLIC;
GRANT CONNECT ON DATABASE :database TO reader, hist_owner, boss WITH GRANT OPTION;
GRANT TEMPORARY ON DATABASE :database TO PUBLIC;

-- PostgreSQL's own objects and those of extensions.
GRANT EXECUTE ON FUNCTION pg_catalog.pg_read_file(text) TO lead;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_ls_dir(text) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_sleep(double precision), pg_catalog.pg_client_encoding() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_client_encoding() TO reader WITH GRANT OPTION;
GRANT SELECT ON pg_catalog.pg_authid TO lead;
GRANT SELECT (rolname, rolpassword) ON pg_catalog.pg_authid TO deputy;
GRANT SELECT (subconninfo) ON pg_catalog.pg_subscription TO deputy;
REVOKE SELECT ON pg_catalog.pg_user_mappings, information_schema.sql_features FROM PUBLIC;
GRANT SELECT ON information_schema.sql_features TO reader;
REVOKE USAGE ON TYPE pg_catalog.xml FROM PUBLIC;
GRANT USAGE ON SCHEMA information_schema TO writer;
REVOKE EXECUTE ON FUNCTION hist.hstore_to_json(hist.hstore) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hist.hstore_to_json(hist.hstore) TO reader;
REVOKE USAGE ON TYPE hist.hstore FROM PUBLIC;
GRANT SELECT ON for_extension.pg_stat_statements TO lead;
REVOKE SELECT ON for_extension.pg_stat_statements FROM PUBLIC;
GRANT SELECT (calls) ON for_extension.pg_stat_statements TO deputy;
GRANT USAGE ON SCHEMA for_extension TO lead;

ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner REVOKE USAGE ON TYPES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner GRANT SELECT ON TABLES TO reader WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner GRANT USAGE ON SCHEMAS TO reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner IN SCHEMA hist GRANT INSERT ON TABLES TO writer WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner IN SCHEMA hist GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner IN SCHEMA hist, "My Schema" GRANT USAGE ON SEQUENCES TO "a b", "*";
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner IN SCHEMA hist GRANT EXECUTE ON FUNCTIONS TO "NONE";
ALTER DEFAULT PRIVILEGES FOR ROLE pgloader_pg IN SCHEMA hist GRANT ALL ON TABLES TO pgbouncer, hist_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE "Łucja" GRANT ALL ON TYPES TO "it's" WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE "Łucja" IN SCHEMA "on" GRANT SELECT ON TABLES TO "Łucja";
-- The owner's own entry is never removed by a manifest.
ALTER DEFAULT PRIVILEGES FOR ROLE "Old Owner" REVOKE DELETE ON TABLES FROM "Old Owner";
ALTER DEFAULT PRIVILEGES FOR ROLE "NONE" IN SCHEMA hist GRANT SELECT ON TABLES TO reader;
-- from 18
ALTER DEFAULT PRIVILEGES FOR ROLE hist_owner GRANT SELECT ON LARGE OBJECTS TO reader;
-- end
-- from 17
GRANT MAINTAIN ON hist.t TO lead;
-- end
-- from 15
GRANT SET ON PARAMETER log_min_duration_statement, Work_Mem TO reader;
GRANT SET, ALTER SYSTEM ON PARAMETER log_statement TO lead WITH GRANT OPTION;
GRANT SET ON PARAMETER plpgsql.check_asserts, "my.own" TO writer;
GRANT ALTER SYSTEM ON PARAMETER jit TO PUBLIC;
-- end
-- An entry whose grantee went in a way that PostgreSQL knows nothing of.
UPDATE pg_class SET relacl = relacl || makeaclitem(99999, relowner, 'SELECT', false) WHERE oid = 'hist.dangling'::regclass;
GRANT SELECT ON information_schema.sql_parts TO reader;
