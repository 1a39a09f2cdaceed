-- +goose Up

-- Which dispatcher reads the referral topics for the earlier events of new partners, and
-- until when the others leave that to it. One row at most.
CREATE TABLE backfill_lease (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  owner uuid NOT NULL,
  until timestamptz NOT NULL
);

-- +goose Down
DROP TABLE backfill_lease;
