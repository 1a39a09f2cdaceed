-- The least rights that each program needs. `navlog migrate --roles` runs this after every
-- migration, with the login that owns the tables: it revokes everything and grants it
-- again. Missing roles are created without a login; ALTER ROLE navlog_serve LOGIN PASSWORD
-- '...' adds one.

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['navlog_ingest', 'navlog_project', 'navlog_serve', 'navlog_dispatch', 'navlog_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- created at the same time by another session
      END;
    END IF;
  END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;
GRANT USAGE ON SCHEMA public TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;
GRANT SELECT ON goose_db_version TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch, navlog_operator;

-- Each program writes only the rows of its own state: serve signs statements up to the block
-- that ingest reports as final. A time in the future would be stale too late. All programs
-- read all rows.
GRANT SELECT, INSERT, UPDATE, DELETE ON program_status TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch;
ALTER TABLE program_status ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everybody_reads ON program_status;
CREATE POLICY everybody_reads ON program_status FOR SELECT USING (true);
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['ingest', 'project', 'serve', 'dispatch'] LOOP
    EXECUTE format('DROP POLICY IF EXISTS %I ON program_status', 'own_' || name);
    EXECUTE format('CREATE POLICY %I ON program_status TO %I
      USING (program = %L) WITH CHECK (program = %L AND at <= now())',
      'own_' || name, 'navlog_' || name, name, name);
  END LOOP;
END $$;

-- The same for the time that each program was seen running.
GRANT SELECT, INSERT, UPDATE, DELETE ON uptime TO navlog_ingest, navlog_project, navlog_serve, navlog_dispatch;
GRANT SELECT ON uptime TO navlog_operator;
ALTER TABLE uptime ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everybody_reads ON uptime;
CREATE POLICY everybody_reads ON uptime FOR SELECT USING (true);
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['ingest', 'project', 'serve', 'dispatch'] LOOP
    EXECUTE format('DROP POLICY IF EXISTS %I ON uptime', 'own_' || name);
    EXECUTE format('CREATE POLICY %I ON uptime TO %I
      USING (program = %L) WITH CHECK (program = %L AND running_at <= now())',
      'own_' || name, 'navlog_' || name, name, name);
  END LOOP;
END $$;

-- Rows of the audit can be added, but not changed. The database sets id, time and login. A
-- role records only the commands that run with its login: `ingest resume`, `restore`,
-- `projection ...` and `dispatch rewind` run where these programs run.
GRANT INSERT (operator, command, partner_id, detail, outcome)
  ON audit TO navlog_ingest, navlog_project, navlog_dispatch, navlog_operator;
GRANT SELECT ON audit TO navlog_operator;
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS operator_reads ON audit;
DROP POLICY IF EXISTS of_ingest ON audit;
DROP POLICY IF EXISTS of_project ON audit;
DROP POLICY IF EXISTS of_dispatch ON audit;
DROP POLICY IF EXISTS of_operator ON audit;
CREATE POLICY operator_reads ON audit FOR SELECT TO navlog_operator USING (true);
CREATE POLICY of_ingest ON audit FOR INSERT TO navlog_ingest WITH CHECK (command IN ('ingest resume', 'restore'));
CREATE POLICY of_project ON audit FOR INSERT TO navlog_project WITH CHECK (command LIKE 'projection %');
CREATE POLICY of_dispatch ON audit FOR INSERT TO navlog_dispatch WITH CHECK (command = 'dispatch rewind');
CREATE POLICY of_operator ON audit FOR INSERT TO navlog_operator
  WITH CHECK (command LIKE 'partner %' OR command LIKE 'webhook %' OR command LIKE 'vault %' OR command = 'kafka grant');

-- Operators' commands for vaults, and their outcomes.
GRANT SELECT, UPDATE (outcome, detail, finished_at) ON vault_command TO navlog_ingest;
GRANT SELECT, INSERT (chain_id, kind, vault, argument) ON vault_command TO navlog_operator;

GRANT SELECT, INSERT, UPDATE ON generation TO navlog_project;

-- Each program takes leases only for its own jobs.
GRANT SELECT, INSERT, UPDATE ON job_lease TO navlog_project, navlog_dispatch;
ALTER TABLE job_lease ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS of_project ON job_lease;
DROP POLICY IF EXISTS of_dispatch ON job_lease;
CREATE POLICY of_project ON job_lease TO navlog_project USING (kind = 'generation') WITH CHECK (kind = 'generation');
CREATE POLICY of_dispatch ON job_lease TO navlog_dispatch
  USING (kind IN ('intake', 'partner')) WITH CHECK (kind IN ('intake', 'partner'));
-- For dispatchers of the version before these leases.
GRANT SELECT, INSERT, UPDATE, DELETE ON lease, backfill_lease TO navlog_dispatch;

-- The API: a partner's own data, its URL, and its commands for dispatch. It cannot read
-- signing secrets or the keys of client certificates, and reads only those columns of API
-- keys that identify a caller.
GRANT SELECT ON partner, delivery, attempt, breaker, generation TO navlog_serve;
GRANT SELECT (partner_id, hash, revoked_at) ON api_key TO navlog_serve;
GRANT SELECT (partner_id, version, url, updated_at, held), UPDATE (version, url, updated_at) ON endpoint TO navlog_serve;
GRANT SELECT (partner_id, url, authorities, client, client_fingerprint, changed_at) ON endpoint_certificates TO navlog_serve;
-- A partner requests test events and single replays; ranges are for operators.
GRANT SELECT (id), INSERT (partner_id, kind, event_id) ON command TO navlog_serve;
ALTER TABLE command ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS serve_returns ON command;
DROP POLICY IF EXISTS serve_asks ON command;
DROP POLICY IF EXISTS operator_reads ON command;
DROP POLICY IF EXISTS operator_asks ON command;
DROP POLICY IF EXISTS dispatch_answers ON command;
CREATE POLICY serve_returns ON command FOR SELECT TO navlog_serve USING (true);
CREATE POLICY serve_asks ON command FOR INSERT TO navlog_serve WITH CHECK (kind IN ('test', 'replay'));
CREATE POLICY operator_reads ON command FOR SELECT TO navlog_operator USING (true);
CREATE POLICY operator_asks ON command FOR INSERT TO navlog_operator WITH CHECK (true);
CREATE POLICY dispatch_answers ON command TO navlog_dispatch USING (true);
GRANT SELECT, INSERT, UPDATE ON rate_bucket TO navlog_serve;
-- serve registers the key that signs statements and retires the previous one; a retired key
-- stays retired and registered.
GRANT SELECT, INSERT (public_key), UPDATE (retired_at) ON statement_key TO navlog_serve;
ALTER TABLE statement_key ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS serve_reads ON statement_key;
DROP POLICY IF EXISTS serve_lists ON statement_key;
DROP POLICY IF EXISTS serve_retires ON statement_key;
CREATE POLICY serve_reads ON statement_key FOR SELECT TO navlog_serve USING (true);
CREATE POLICY serve_lists ON statement_key FOR INSERT TO navlog_serve WITH CHECK (true);
CREATE POLICY serve_retires ON statement_key FOR UPDATE TO navlog_serve
  USING (retired_at IS NULL) WITH CHECK (retired_at = now());

-- Everything about deliveries, and the URL and secret of each partner.
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery, attempt, breaker, dispatcher TO navlog_dispatch;
GRANT SELECT, INSERT, UPDATE ON position, stream, dead_record TO navlog_dispatch;
GRANT SELECT, INSERT ON correction, adopted TO navlog_dispatch;
GRANT SELECT, UPDATE ON retention TO navlog_dispatch;
GRANT SELECT, UPDATE, DELETE ON command TO navlog_dispatch;
GRANT SELECT ON partner, endpoint, endpoint_certificates TO navlog_dispatch;

-- Operators: partners, keys, secrets and certificates, and commands for dispatch.
GRANT SELECT ON partner, api_key, endpoint TO navlog_operator;
GRANT INSERT (id, name), UPDATE (name, disabled, rate_limit) ON partner TO navlog_operator;
GRANT INSERT (partner_id, hash, last4), UPDATE (revoked_at) ON api_key TO navlog_operator;
GRANT INSERT (partner_id, secret), UPDATE (version, secret, next_secret, next_at, held, updated_at)
  ON endpoint TO navlog_operator;
GRANT SELECT, DELETE,
  INSERT (partner_id, url, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint),
  UPDATE (id, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint, changed_at)
  ON endpoint_certificates TO navlog_operator;
GRANT SELECT, INSERT (partner_id, kind, event_id, first_sequence, last_sequence, only_state)
  ON command TO navlog_operator;
GRANT SELECT ON delivery, correction, attempt, breaker, stream, position, dead_record, dispatcher, generation, program_status TO navlog_operator;
GRANT UPDATE (retry_at) ON dead_record TO navlog_operator;
GRANT UPDATE (log_id) ON position TO navlog_operator;

-- The rights that partners need to rotate their secret and keys, and to change the certificates for their URL, in addition
-- to those of navlog_serve. It writes keys of client certificates and cannot read them. No program has this role: an
-- operator who allows these changes (http.partnerRotation) grants it with GRANT navlog_rotation TO navlog_serve. If the owner of the
-- tables may not create roles, this script skips the role; deploy/docker/postgres-logins.sql creates it.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'navlog_rotation') THEN
    BEGIN
      CREATE ROLE navlog_rotation NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN NULL; -- created at the same time by another session
      WHEN insufficient_privilege THEN RETURN;
    END;
  END IF;
  REVOKE ALL ON ALL TABLES IN SCHEMA public FROM navlog_rotation;
  GRANT USAGE ON SCHEMA public TO navlog_rotation;
  GRANT SELECT (secret, next_secret, next_at), UPDATE (secret, next_secret, next_at) ON endpoint TO navlog_rotation;
  GRANT SELECT (id, last4, created_at), INSERT (partner_id, hash, last4), UPDATE (revoked_at) ON api_key TO navlog_rotation;
  GRANT SELECT (key_ids, until) ON dispatcher TO navlog_rotation;
  GRANT DELETE,
    INSERT (partner_id, url, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint),
    UPDATE (id, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint, changed_at)
    ON endpoint_certificates TO navlog_rotation;
  -- A change is recorded only under the name of the partner whose key was given.
  GRANT INSERT (operator, command, partner_id, detail, outcome) ON audit TO navlog_rotation;
  DROP POLICY IF EXISTS of_rotation ON audit;
  CREATE POLICY of_rotation ON audit FOR INSERT TO navlog_rotation
    WITH CHECK (command IN ('partner rotate-key', 'partner rotate-secret', 'partner certificates set', 'partner certificates remove')
      AND operator = 'partner ' || partner_id);
END $$;
