-- +goose Up

-- The log of the referrals that moved a position: those of another log are rejected.
-- All positions have the same log; NULL if no referral was read yet. Written by
-- dispatch, and by `navlog webhook follow-log`.
ALTER TABLE position ADD COLUMN log_id bytea CHECK (octet_length(log_id) = 16);

-- +goose Down
ALTER TABLE position DROP COLUMN log_id;
