-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- A service with a schema for each customer, all of the same shape.

CREATE ROLE tenants_owner;
CREATE ROLE builder SUPERUSER;
SET ROLE builder;
DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['acme', 'Łódź & Co', 'umbrella', 'north-west'] LOOP
        EXECUTE format('CREATE SCHEMA %I', tenant);
        EXECUTE format('CREATE TABLE %I.orders (id bigserial PRIMARY KEY, total numeric, card text)', tenant);
        EXECUTE format('CREATE TABLE %I."Line Items" (order_id bigint REFERENCES %I.orders, what text)', tenant, tenant);
        EXECUTE format('CREATE VIEW %I.totals AS SELECT sum(total) FROM %I.orders', tenant, tenant);
        EXECUTE format('CREATE FUNCTION %I.close(bigint) RETURNS void LANGUAGE sql AS ''SELECT''', tenant);
        EXECUTE format('CREATE TYPE %I.status AS ENUM (''open'', ''closed'')', tenant);
    END LOOP;
END $$;
CREATE SCHEMA billing;
CREATE TABLE billing.invoices (id int PRIMARY KEY);
RESET ROLE;
REASSIGN OWNED BY builder TO tenants_owner;
DROP ROLE builder;
