-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- A reader, an editor and a login for each customer; one reader has more than the others by now.

CREATE ROLE support LOGIN;
DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['acme', 'Łódź & Co', 'umbrella', 'north-west'] LOOP
        EXECUTE format('CREATE ROLE %I', 'app_' || tenant || '_read');
        EXECUTE format('CREATE ROLE %I', 'app_' || tenant || '_edit');
        EXECUTE format('CREATE ROLE %I LOGIN', 'app_' || tenant || '_login');
        EXECUTE format('ALTER ROLE %I SET search_path = %I, public', 'app_' || tenant || '_login', tenant);
        EXECUTE format('GRANT %I TO %I', 'app_' || tenant || '_read', 'app_' || tenant || '_edit');
        EXECUTE format('GRANT %I TO %I', 'app_' || tenant || '_edit', 'app_' || tenant || '_login');
        EXECUTE format('GRANT %I TO support', 'app_' || tenant || '_read');
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I, %I', tenant, 'app_' || tenant || '_read', 'app_' || tenant || '_edit');
        EXECUTE format('GRANT SELECT ON %I."Line Items", %I.totals TO %I', tenant, tenant, 'app_' || tenant || '_read');
        EXECUTE format('GRANT SELECT (id, total) ON %I.orders TO %I', tenant, 'app_' || tenant || '_read');
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA %I TO %I', tenant, 'app_' || tenant || '_edit');
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', tenant, 'app_' || tenant || '_edit');
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %I.close(bigint) FROM PUBLIC', tenant);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %I.close(bigint) TO %I', tenant, 'app_' || tenant || '_edit');
        EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE tenants_owner IN SCHEMA %I GRANT SELECT, INSERT, UPDATE ON TABLES TO %I', tenant, 'app_' || tenant || '_edit');
    END LOOP;
END $$;
GRANT SELECT (card) ON umbrella.orders TO app_umbrella_read;
GRANT USAGE ON SCHEMA billing TO support;
GRANT SELECT ON billing.invoices TO support;
