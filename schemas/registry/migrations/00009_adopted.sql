-- +goose Up

-- Partners whose earlier events were backfilled from the referral topics. A referral
-- that names an unknown partner leaves no row, so its events are found this way.
-- Written by dispatch, which until now kept the events of every id.
CREATE TABLE adopted (
  partner_id bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO adopted (partner_id) SELECT id FROM partner;

-- +goose Down
DROP TABLE adopted;
