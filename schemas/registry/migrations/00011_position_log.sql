-- +goose Up

-- Which log the referrals were of that moved a position: one of another is refused.
-- All positions have the same; NULL where nothing of a log was read yet. Written by
-- dispatch, and by `navlog webhook follow-log`.
ALTER TABLE position ADD COLUMN log_id bytea CHECK (octet_length(log_id) = 16);

-- +goose Down
ALTER TABLE position DROP COLUMN log_id;
