-- +goose Up

-- Partners for whom the referral topics were read from their start to where they
-- had been read when the partner came to be. What names a partner that does not
-- exist leaves nothing behind, so this is how its earlier events are found. Written
-- by dispatch, which until now kept the events of every id.
CREATE TABLE adopted (
  partner_id bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO adopted (partner_id) SELECT id FROM partner;

-- +goose Down
DROP TABLE adopted;
