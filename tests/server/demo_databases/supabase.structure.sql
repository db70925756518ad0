-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- A project as Supabase lays it out: the roles and schemas that the service makes, and an application's tables.

CREATE ROLE anon NOINHERIT;
CREATE ROLE authenticated NOINHERIT;
CREATE ROLE service_role NOINHERIT BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT;
CREATE ROLE supabase_admin LOGIN SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS;
CREATE ROLE supabase_auth_admin LOGIN NOINHERIT CREATEROLE;
CREATE ROLE supabase_storage_admin LOGIN NOINHERIT CREATEROLE;
CREATE ROLE supabase_realtime_admin NOINHERIT;
CREATE ROLE dashboard_user CREATEDB CREATEROLE REPLICATION;
CREATE ROLE pgbouncer LOGIN;

CREATE SCHEMA extensions;
CREATE EXTENSION pgcrypto SCHEMA extensions;
CREATE EXTENSION "uuid-ossp" SCHEMA extensions;
CREATE EXTENSION pg_stat_statements SCHEMA extensions;
CREATE EXTENSION pg_trgm SCHEMA extensions;

CREATE ROLE builder SUPERUSER;
SET ROLE builder;
CREATE SCHEMA auth;
CREATE TABLE auth.users (
    id uuid PRIMARY KEY, email text, encrypted_password text, role text, created_at timestamptz, raw_app_meta_data jsonb
);
CREATE TABLE auth.sessions (id uuid PRIMARY KEY, user_id uuid REFERENCES auth.users);
CREATE TABLE auth.refresh_tokens (id bigserial PRIMARY KEY, token text, session_id uuid REFERENCES auth.sessions);
CREATE TABLE auth.schema_migrations (version text PRIMARY KEY);
CREATE TYPE auth.factor_type AS ENUM ('totp', 'webauthn');
CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS
    $$ SELECT nullif(current_setting('request.jwt.claim.sub', true), '')::uuid $$;
CREATE FUNCTION auth.role() RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT nullif(current_setting('request.jwt.claim.role', true), '') $$;
CREATE FUNCTION auth.jwt() RETURNS jsonb LANGUAGE sql STABLE AS
    $$ SELECT coalesce(nullif(current_setting('request.jwt.claims', true), ''), '{}')::jsonb $$;
RESET ROLE;
REASSIGN OWNED BY builder TO supabase_auth_admin;

SET ROLE builder;
CREATE SCHEMA storage;
CREATE TABLE storage.buckets (id text PRIMARY KEY, name text NOT NULL, owner uuid, public boolean DEFAULT false);
CREATE TABLE storage.objects (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), bucket_id text REFERENCES storage.buckets, name text, owner uuid,
    metadata jsonb
);
CREATE TABLE storage.migrations (id int PRIMARY KEY, name text);
ALTER TABLE storage.buckets ENABLE ROW LEVEL SECURITY;
ALTER TABLE storage.objects ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION storage.filename(name text) RETURNS text LANGUAGE sql AS $$ SELECT split_part(name, '/', -1) $$;
CREATE FUNCTION storage.foldername(name text) RETURNS text[] LANGUAGE sql AS $$ SELECT string_to_array(name, '/') $$;
RESET ROLE;
REASSIGN OWNED BY builder TO supabase_storage_admin;

SET ROLE builder;
CREATE SCHEMA realtime;
CREATE TABLE realtime.messages (id uuid, topic text, payload jsonb, inserted_at timestamp NOT NULL) PARTITION BY RANGE (inserted_at);
CREATE TABLE realtime.subscription (id bigint GENERATED ALWAYS AS IDENTITY, subscription_id uuid, claims jsonb);
CREATE TYPE realtime.action AS ENUM ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'ERROR');
CREATE TYPE realtime.wal_rls AS (wal jsonb, is_rls_enabled boolean, subscription_ids uuid[], errors text[]);
CREATE FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$;
CREATE SCHEMA graphql_public;
CREATE FUNCTION graphql_public.graphql("operationName" text, query text, variables jsonb, extensions jsonb) RETURNS jsonb
    LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
CREATE SCHEMA vault;
CREATE TABLE vault.secrets (id uuid PRIMARY KEY, name text, secret text NOT NULL);
CREATE VIEW vault.decrypted_secrets WITH (security_barrier) AS SELECT id, name, secret AS decrypted_secret FROM vault.secrets;
CREATE FUNCTION vault.create_secret(new_secret text, new_name text DEFAULT NULL) RETURNS uuid LANGUAGE sql
    SECURITY DEFINER SET search_path = '' AS $$ SELECT gen_random_uuid() $$;
CREATE SCHEMA pgbouncer;
CREATE FUNCTION pgbouncer.get_auth(p_usename text) RETURNS TABLE (username text, password text) LANGUAGE sql
    SECURITY DEFINER AS $$ SELECT usename::text, passwd::text FROM pg_catalog.pg_shadow WHERE usename = p_usename $$;
RESET ROLE;
REASSIGN OWNED BY builder TO supabase_admin;
DROP ROLE builder;
ALTER SCHEMA pgbouncer OWNER TO pgbouncer;

CREATE TABLE public.profiles (id uuid PRIMARY KEY REFERENCES auth.users, username text UNIQUE, avatar_url text);
CREATE TABLE public.todos (id bigserial PRIMARY KEY, user_id uuid REFERENCES auth.users, task text, done boolean);
CREATE TABLE public.audit (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz, what jsonb);
CREATE VIEW public.usernames AS SELECT username FROM public.profiles;
ALTER TABLE public.profiles ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.todos ENABLE ROW LEVEL SECURITY;
CREATE POLICY "Own todos" ON public.todos TO authenticated USING (auth.uid() = user_id);
CREATE POLICY "Everybody reads" ON public.profiles FOR SELECT TO anon, authenticated USING (true);
CREATE FUNCTION public.handle_new_user() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS
    $$ BEGIN INSERT INTO public.profiles (id) VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER on_auth_user_created AFTER INSERT ON auth.users FOR EACH ROW EXECUTE FUNCTION public.handle_new_user();
CREATE FUNCTION public.is_admin() RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$ SELECT false $$;
