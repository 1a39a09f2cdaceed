-- +goose Up

-- Who does a job, and until when. A row whose time is over stays, so that its fence never decreases. Written by the
-- program whose job it is:
--
--	generation  the project that writes a generation; key is its id
--	intake      the dispatch that reads the referral topics; key is 0
--	partner     the dispatch that sends to a partner; key is its id. Every write of a result checks fence
CREATE TABLE job_lease (
  kind text NOT NULL,
  key bigint NOT NULL,
  owner uuid NOT NULL,
  fence bigint NOT NULL,
  until timestamptz NOT NULL,
  PRIMARY KEY (kind, key)
) PARTITION BY LIST (kind);

CREATE TABLE job_lease_program PARTITION OF job_lease FOR VALUES IN ('generation', 'intake');

-- The partners' leases stay where they are, for the dispatchers of the version before this one: both versions see
-- the same rows, so that they divide the partners while they run side by side. The old version finds its table as a
-- view, which PostgreSQL updates. It inserts ON CONFLICT (partner_id), so the partition keeps an index by key only.
ALTER TABLE lease RENAME TO job_lease_partner;
ALTER TABLE job_lease_partner RENAME COLUMN partner_id TO key;
ALTER TABLE job_lease_partner ADD COLUMN kind text NOT NULL DEFAULT 'partner';
ALTER TABLE job_lease_partner DROP CONSTRAINT lease_pkey;
ALTER TABLE job_lease_partner ADD UNIQUE (key);
ALTER TABLE job_lease ATTACH PARTITION job_lease_partner FOR VALUES IN ('partner');

CREATE VIEW lease AS SELECT key AS partner_id, owner, fence, until FROM job_lease_partner;

-- Whether a project of the version before this one writes a generation: it holds an advisory lock ("navl", id) of
-- its session instead of a lease.
-- +goose StatementBegin
CREATE FUNCTION locked_by_old_project(generation bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1851881068 AND l.objid = generation::oid AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION locked_by_old_project;
DROP VIEW lease;
ALTER TABLE job_lease DETACH PARTITION job_lease_partner;
DROP TABLE job_lease;
ALTER TABLE job_lease_partner DROP CONSTRAINT job_lease_partner_pkey;
ALTER TABLE job_lease_partner DROP CONSTRAINT job_lease_partner_key_key;
ALTER TABLE job_lease_partner DROP COLUMN kind;
ALTER TABLE job_lease_partner RENAME COLUMN key TO partner_id;
ALTER TABLE job_lease_partner RENAME TO lease;
ALTER TABLE lease ADD CONSTRAINT lease_pkey PRIMARY KEY (partner_id);
