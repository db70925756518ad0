-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- Who may do what: what the service grants, and what a team has added to it.

GRANT anon, authenticated, service_role TO authenticator;
GRANT anon, authenticated, service_role TO supabase_storage_admin;
GRANT supabase_auth_admin, supabase_storage_admin TO postgres;
CREATE ROLE backend LOGIN PASSWORD 'not a real one';
CREATE ROLE analyst LOGIN NOINHERIT CONNECTION LIMIT 3;
CREATE ROLE team;
GRANT authenticated TO backend;
GRANT team TO backend, analyst;
GRANT team TO dashboard_user;
ALTER ROLE backend SET search_path = public, extensions;

GRANT USAGE ON SCHEMA public TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin IN SCHEMA public GRANT ALL ON TABLES TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin IN SCHEMA public GRANT ALL ON FUNCTIONS TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin IN SCHEMA public GRANT ALL ON SEQUENCES TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin IN SCHEMA graphql_public GRANT ALL ON FUNCTIONS TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_auth_admin IN SCHEMA auth GRANT ALL ON TABLES TO postgres, dashboard_user;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_auth_admin IN SCHEMA auth GRANT ALL ON SEQUENCES TO postgres, dashboard_user;
ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA storage GRANT ALL ON TABLES TO postgres, anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES FOR ROLE postgres REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE supabase_admin REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA public TO anon, authenticated, service_role;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO anon, authenticated, service_role;
GRANT ALL ON ALL ROUTINES IN SCHEMA public TO anon, authenticated, service_role;
REVOKE EXECUTE ON FUNCTION public.is_admin() FROM PUBLIC, anon;
REVOKE ALL ON public.audit FROM anon, authenticated;
GRANT SELECT (id, at) ON public.audit TO authenticated;

GRANT USAGE ON SCHEMA auth TO anon, authenticated, service_role, postgres;
GRANT ALL ON SCHEMA auth TO dashboard_user, supabase_auth_admin;
GRANT SELECT, INSERT, UPDATE, DELETE, REFERENCES, TRIGGER, TRUNCATE ON ALL TABLES IN SCHEMA auth TO postgres, dashboard_user;
GRANT SELECT ON auth.users, auth.sessions TO postgres WITH GRANT OPTION;
REVOKE ALL ON auth.schema_migrations FROM postgres, dashboard_user;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA auth TO dashboard_user;
GRANT USAGE ON SCHEMA storage TO postgres, anon, authenticated, service_role;
GRANT ALL ON SCHEMA storage TO supabase_storage_admin, dashboard_user;
GRANT ALL ON storage.buckets, storage.objects TO postgres, anon, authenticated, service_role;
GRANT USAGE ON SCHEMA realtime TO postgres, anon, authenticated, service_role;
GRANT ALL ON SCHEMA realtime TO supabase_realtime_admin;
GRANT SELECT ON realtime.subscription TO anon, authenticated, service_role;
GRANT SELECT, INSERT, UPDATE ON realtime.messages TO anon, authenticated, service_role;
GRANT USAGE ON SCHEMA graphql_public TO postgres, anon, authenticated, service_role;
GRANT USAGE ON SCHEMA vault TO postgres, service_role;
GRANT SELECT, DELETE ON vault.secrets, vault.decrypted_secrets TO postgres, service_role;
REVOKE EXECUTE ON FUNCTION vault.create_secret(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vault.create_secret(text, text) TO postgres, service_role;
REVOKE EXECUTE ON FUNCTION pgbouncer.get_auth(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pgbouncer.get_auth(text) TO pgbouncer;

-- What extensions brought, given on: the service does that for its dashboard.
GRANT USAGE ON SCHEMA extensions TO postgres, anon, authenticated, service_role;
GRANT ALL ON SCHEMA extensions TO dashboard_user;
GRANT ALL ON ALL ROUTINES IN SCHEMA extensions TO dashboard_user;
REVOKE EXECUTE ON FUNCTION extensions.gen_random_bytes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION extensions.gen_random_bytes(int) TO service_role, team;
GRANT SELECT ON extensions.pg_stat_statements TO analyst WITH GRANT OPTION;

GRANT USAGE ON SCHEMA public, auth TO team;
GRANT SELECT ON public.usernames, public.todos TO team;
GRANT SELECT (id, email, created_at) ON auth.users TO analyst;
GRANT CONNECT ON DATABASE :database TO team;
