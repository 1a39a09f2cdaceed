-- +goose Up

-- A partner's use of its limits, on all instances of query together: the time
-- (Unix nanoseconds) at which the full limit is available again. Written by query.
CREATE TABLE rate_bucket (
  partner_id bigint NOT NULL REFERENCES partner (id),
  policy text NOT NULL CHECK (policy IN ('partner', 'webhooks')),
  full_at bigint NOT NULL,
  PRIMARY KEY (partner_id, policy)
) WITH (fillfactor = 50); -- updated in place

-- +goose Down
DROP TABLE rate_bucket;
