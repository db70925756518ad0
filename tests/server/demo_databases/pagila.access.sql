-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- Who may do what in pagila, as years of GRANT and REVOKE left it.

ALTER ROLE pagila_owner NOINHERIT;
COMMENT ON ROLE pagila_owner IS 'Owns the schema; nobody logs in as it';
CREATE ROLE pagila_readonly;
CREATE ROLE pagila_readwrite;
CREATE ROLE pagila_reporting;
CREATE ROLE pagila_app LOGIN PASSWORD 'not a real one' CONNECTION LIMIT 40;
CREATE ROLE maria LOGIN VALID UNTIL '2027-01-31 23:59:59+01';
CREATE ROLE etl LOGIN CREATEDB;
ALTER ROLE maria SET search_path = reporting, public;
ALTER ROLE maria SET statement_timeout = '5min';
ALTER ROLE etl SET work_mem = '256MB';
GRANT pagila_readonly TO pagila_readwrite, pagila_reporting;
GRANT pagila_readwrite TO pagila_app;
GRANT pagila_reporting TO maria WITH ADMIN OPTION;
GRANT pagila_owner TO etl;
GRANT pg_monitor TO maria;

ALTER SCHEMA archive OWNER TO pagila_owner;
ALTER SCHEMA reporting OWNER TO etl;
REVOKE ALL ON DATABASE :database FROM PUBLIC;
GRANT CONNECT ON DATABASE :database TO pagila_readonly;
GRANT CONNECT, TEMPORARY, CREATE ON DATABASE :database TO etl;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO pagila_readonly;
GRANT USAGE, CREATE ON SCHEMA public TO pagila_owner;
GRANT USAGE ON SCHEMA archive, reporting TO pagila_reporting;

-- Every table and view, and afterwards not the staff's passwords.
GRANT SELECT ON ALL TABLES IN SCHEMA public TO pagila_readonly;
REVOKE SELECT ON staff FROM pagila_readonly;
GRANT SELECT (staff_id, first_name, last_name, store_id) ON staff TO pagila_readonly;
GRANT UPDATE (email, active) ON staff TO pagila_readwrite;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO pagila_readwrite;
REVOKE INSERT, UPDATE, DELETE ON staff, store, country FROM pagila_readwrite;
REVOKE DELETE ON payment, payment_p2026_01, payment_p2026_02 FROM pagila_readwrite;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO pagila_readwrite;
GRANT TRUNCATE ON payment_rest TO etl;
GRANT SELECT, REFERENCES ON film, actor TO pagila_reporting WITH GRANT OPTION;
GRANT SELECT (title, rating) ON reporting.films TO maria WITH GRANT OPTION;
GRANT SELECT ON ALL TABLES IN SCHEMA reporting TO pagila_reporting;
GRANT SELECT ON ALL TABLES IN SCHEMA archive TO pagila_reporting;
GRANT SELECT ON language, category TO PUBLIC;

REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA public FROM PUBLIC;
GRANT EXECUTE ON FUNCTION inventory_in_stock(int), film_in_stock(int, int), group_concat(text) TO pagila_readonly;
GRANT EXECUTE ON PROCEDURE refresh_reports(int) TO etl;
GRANT EXECUTE ON FUNCTION rewards_report(int, numeric) TO pagila_reporting WITH GRANT OPTION;
REVOKE USAGE ON TYPE mpaa_rating, "bıgınt" FROM PUBLIC;
GRANT USAGE ON TYPE mpaa_rating TO pagila_readwrite;

ALTER DEFAULT PRIVILEGES FOR ROLE pagila_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE pagila_owner IN SCHEMA public GRANT SELECT ON TABLES TO pagila_readonly;
ALTER DEFAULT PRIVILEGES FOR ROLE pagila_owner IN SCHEMA public GRANT INSERT, UPDATE, DELETE ON TABLES TO pagila_readwrite;
ALTER DEFAULT PRIVILEGES FOR ROLE pagila_owner IN SCHEMA public GRANT USAGE ON SEQUENCES TO pagila_readwrite;
ALTER DEFAULT PRIVILEGES FOR ROLE etl IN SCHEMA reporting GRANT SELECT ON TABLES TO pagila_reporting WITH GRANT OPTION;
