-- A login for each program of navlog, and one for `navlog migrate`, which owns the
-- tables; none is a superuser. psql runs this script with the server's own login when
-- compose.yaml creates the database. On a database that existed before, run it once:
--   docker compose -f deploy/docker/compose.yaml exec postgres \
--     psql -v ON_ERROR_STOP=1 -U navlog -d navlog -f /docker-entrypoint-initdb.d/navlog-logins.sql
-- and again whenever a password has changed, after the container was recreated (docs/operations.md,
-- "Passwords in Compose"). `navlog migrate --roles` grants the rights.
\set migrate `cat /run/secrets/postgres_migrate`
\set ingest `cat /run/secrets/postgres_ingest`
\set project `cat /run/secrets/postgres_project`
\set serve `cat /run/secrets/postgres_serve`
\set dispatch `cat /run/secrets/postgres_dispatch`
\set operator `cat /run/secrets/postgres_operator`

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['navlog_migrate', 'navlog_ingest', 'navlog_project', 'navlog_serve', 'navlog_dispatch', 'navlog_operator',
  'navlog_rotation']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

ALTER ROLE navlog_migrate LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'migrate';
ALTER ROLE navlog_ingest LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'ingest';
ALTER ROLE navlog_project LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'project';
ALTER ROLE navlog_serve LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'serve';
ALTER ROLE navlog_dispatch LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'dispatch';
ALTER ROLE navlog_operator LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'operator';
-- Not a login: an operator grants this role to navlog_serve if partners may rotate their keys and secrets and
-- change their certificates (http.partnerRotation).
ALTER ROLE navlog_rotation NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;

-- The owner of the database may create tables in it. Existing tables and functions change
-- their owner.
SELECT format('ALTER DATABASE %I OWNER TO navlog_migrate', current_database()) \gexec
SELECT format('ALTER TABLE %I.%I OWNER TO navlog_migrate', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v') \gexec
SELECT format('ALTER FUNCTION %s OWNER TO navlog_migrate', p.oid::regprocedure)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' \gexec
