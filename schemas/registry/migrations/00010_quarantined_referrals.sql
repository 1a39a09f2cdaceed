-- +goose Up

-- A referral that the read models quarantine, because one of its amounts cannot be
-- summed, is not sent to its partner, and is kept here.
ALTER TABLE dead_record
  DROP CONSTRAINT dead_record_reason_check,
  ADD CONSTRAINT dead_record_reason_check CHECK (reason IN ('poison', 'conflict', 'quarantined'));

-- +goose Down
DELETE FROM dead_record WHERE reason = 'quarantined';
ALTER TABLE dead_record
  DROP CONSTRAINT dead_record_reason_check,
  ADD CONSTRAINT dead_record_reason_check CHECK (reason IN ('poison', 'conflict'));
