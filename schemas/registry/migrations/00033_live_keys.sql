-- +goose Up

-- Only live keys are looked for by their partner, and revoked ones stay: a partner that may rotate its keys adds up to ten
-- a minute.
DROP INDEX api_key_partner;
CREATE INDEX api_key_partner ON api_key (partner_id) WHERE revoked_at IS NULL;

-- +goose Down
DROP INDEX api_key_partner;
CREATE INDEX api_key_partner ON api_key (partner_id);
