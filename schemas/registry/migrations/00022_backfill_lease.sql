-- +goose Up

-- The dispatcher that backfills new partners from the referral topics, and until when.
-- At most one row.
CREATE TABLE backfill_lease (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  owner uuid NOT NULL,
  until timestamptz NOT NULL
);

-- +goose Down
DROP TABLE backfill_lease;
