-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- A database that nobody has tidied for ten years: every sort of object that carries privileges, under odd names.

CREATE ROLE hist_owner;
CREATE ROLE "Old Owner";
CREATE ROLE pgloader_pg;
CREATE ROLE "łódź";
CREATE FOREIGN DATA WRAPPER "odd wrapper";
CREATE ROLE builder SUPERUSER;
SET ROLE builder;

CREATE SCHEMA hist;
CREATE SCHEMA "My Schema";
CREATE SCHEMA "on";
CREATE SCHEMA "schema ""quoted"": it's #1";
CREATE SCHEMA empty_one;
-- Nobody can write a rule for what lies in here.
CREATE SCHEMA nameless;
CREATE TABLE nameless."*" (a int);
CREATE TABLE nameless.plain (a int);
CREATE SCHEMA "none of your {{ business }}";
CREATE TABLE "none of your {{ business }}".t (a int);

CREATE TYPE hist.mood AS ENUM ('sad', 'ok');
CREATE TYPE hist.pair AS (a int, b text);
CREATE TYPE hist.span AS RANGE (subtype = float8);
CREATE DOMAIN hist.positive AS int CHECK (VALUE > 0);
CREATE DOMAIN "My Schema"."Strange, Type" AS text;

CREATE TABLE hist.t (a int PRIMARY KEY, b text, c hist.mood, d hist.positive, "odd column" int, "Größe" int);
CREATE TABLE hist.u (id bigserial PRIMARY KEY, a int REFERENCES hist.t);
CREATE TABLE hist.owner_lost_all (a int);
CREATE TABLE hist.owner_lost_one (a int, b int);
CREATE TABLE hist.owner_kept_column (a int, b int);
CREATE TABLE hist.with_public (a int, b int);
CREATE TABLE hist.dangling (a int);
CREATE TABLE hist.row_type (a int);
CREATE TABLE hist.chain (a int, b int);
CREATE TABLE hist.chain_of_strangers (a int, b int);
CREATE TABLE hist.empty_acl (a int);
CREATE TABLE hist."Case" (a int);
CREATE TABLE hist."case" (a int);
CREATE TABLE "My Schema"."a.b" ("*" int, "x,y" int);
CREATE TABLE "My Schema"."yes" (a int);
CREATE TABLE "My Schema"."2026-01-01" (a int);
CREATE TABLE "My Schema".łąka (a int);
CREATE TABLE "on"."null" ("true" int, "1e3" int);
CREATE TABLE "schema ""quoted"": it's #1"."t""'`$" (a int);
CREATE TABLE "schema ""quoted"": it's #1"."a name of exactly sixty-three bytes, which is all that there is" (a int);
CREATE VIEW hist.v AS SELECT a FROM hist.t;
CREATE VIEW hist.v2 AS SELECT a FROM hist.u;
CREATE MATERIALIZED VIEW hist.m AS SELECT a FROM hist.t;
CREATE SEQUENCE hist.s;
CREATE SEQUENCE hist.s2;

CREATE FUNCTION hist.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION hist.f(hist.pair, variadic text[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION hist.f("My Schema"."Strange, Type", "char", char(3), timestamptz, interval day, numeric(3, 1), bit varying)
    RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION hist."F of"(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION hist."odd, ""name"""(IN a double precision, OUT b int, INOUT c int) LANGUAGE sql AS 'SELECT 1, 1';
CREATE FUNCTION "on".f(hist.t, hist.t[], hist.mood[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE hist.p(INOUT a int, b text DEFAULT 'x') LANGUAGE plpgsql AS 'BEGIN a := 1; END';
CREATE AGGREGATE hist.percentile(float8 ORDER BY float8) (
    SFUNC = ordered_set_transition, STYPE = internal, FINALFUNC = percentile_cont_float8_final
);
CREATE AGGREGATE hist.total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE AGGREGATE hist.rows(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '0');
CREATE FUNCTION hist.win() RETURNS bigint LANGUAGE internal WINDOW AS 'window_row_number';

CREATE SERVER "far away" FOREIGN DATA WRAPPER "odd wrapper";
CREATE SERVER nearby FOREIGN DATA WRAPPER "odd wrapper";
CREATE USER MAPPING FOR pgloader_pg SERVER nearby OPTIONS (who 'me');
CREATE FOREIGN TABLE hist.ft (a int, b int) SERVER nearby;
SELECT lo_create(424242), lo_create(424243), lo_create(424244), lo_create(4294967290);

RESET ROLE;
REASSIGN OWNED BY builder TO hist_owner;
DROP ROLE builder;
CREATE EXTENSION hstore SCHEMA hist;
CREATE EXTENSION file_fdw;
CREATE TRUSTED LANGUAGE "pl odd" HANDLER plpgsql_call_handler INLINE plpgsql_inline_handler VALIDATOR plpgsql_validator;
CREATE SCHEMA for_extension;
CREATE EXTENSION pg_stat_statements SCHEMA for_extension;
ALTER TABLE hist.owner_lost_one OWNER TO "Old Owner";
ALTER TABLE hist.chain_of_strangers OWNER TO pgloader_pg;
ALTER TABLE hist."Case" OWNER TO postgres;
ALTER FUNCTION hist.f() OWNER TO pgloader_pg;
ALTER TABLE "My Schema"."yes" OWNER TO "łódź";
ALTER SCHEMA "on" OWNER TO postgres;
ALTER SCHEMA empty_one OWNER TO postgres;
-- next
SET allow_in_place_tablespaces = on;
-- next
CREATE TABLESPACE "another one" LOCATION '';
-- next
RESET allow_in_place_tablespaces;
