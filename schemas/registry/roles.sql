-- What each program may do: the least that its work takes. Run by `navlog migrate
-- --roles`, with the login that owns the tables, after every migration: it takes
-- back everything and grants it anew. Roles that are missing are made without a
-- login; ALTER ROLE navlog_serve LOGIN PASSWORD '...' gives one.

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['navlog_ingest', 'navlog_project', 'navlog_serve', 'navlog_dispatch', 'navlog_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- somebody else was faster
      END;
    END IF;
  END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;
GRANT USAGE ON SCHEMA public TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;
GRANT SELECT ON goose_db_version TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;

-- What each program says of itself, and project of others: who still reads a generation.
GRANT SELECT, INSERT, UPDATE, DELETE ON program_status TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch;

-- ingest resume and projection ... are given where these programs run. A row can be
-- added, and neither read nor changed.
GRANT INSERT ON audit TO navlog_ingest, navlog_project;

-- What operators want done to vaults, and what came of it.
GRANT SELECT, UPDATE (outcome, detail, finished_at) ON vault_command TO navlog_ingest;
GRANT SELECT, INSERT (chain_id, kind, vault) ON vault_command TO navlog_operator;

GRANT SELECT, INSERT, UPDATE ON generation TO navlog_project;

-- The API: what a partner may see of itself, its URL, and what it asks dispatch for.
-- Not the signing secrets; of keys no more than it takes to find a caller's.
GRANT SELECT ON partner, delivery, attempt, breaker, generation TO navlog_serve;
GRANT SELECT (partner_id, hash, revoked_at) ON api_key TO navlog_serve;
GRANT SELECT (partner_id, version, url, updated_at), UPDATE (version, url, updated_at) ON endpoint TO navlog_serve;
GRANT SELECT (id), INSERT (partner_id, kind, event_id) ON command TO navlog_serve;
GRANT SELECT, INSERT, UPDATE ON rate_bucket TO navlog_serve;

-- Everything about deliveries, and where and with which secret a partner is told.
GRANT SELECT, INSERT, UPDATE, DELETE ON position, stream, delivery, attempt, breaker, lease, dead_record, dispatcher, adopted, backfill_lease, retention TO navlog_dispatch;
GRANT SELECT, INSERT ON correction TO navlog_dispatch;
GRANT SELECT, UPDATE, DELETE ON command TO navlog_dispatch;
GRANT SELECT ON partner, endpoint TO navlog_dispatch;

-- Operators: partners, keys and secrets, and what they ask dispatch for.
GRANT SELECT, INSERT, UPDATE ON partner, api_key, endpoint TO navlog_operator;
GRANT SELECT, INSERT ON command, audit TO navlog_operator;
GRANT SELECT ON delivery, correction, attempt, breaker, stream, position, dead_record, dispatcher, generation, program_status TO navlog_operator;
GRANT UPDATE (retry_at) ON dead_record TO navlog_operator;
GRANT UPDATE (log_id) ON position TO navlog_operator;
