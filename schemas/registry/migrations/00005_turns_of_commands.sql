-- +goose Up

-- When a command has its turn: one that failed, or of which a part is done, has
-- it later. Written by dispatch.
ALTER TABLE command ADD COLUMN due_at timestamptz NOT NULL DEFAULT now();

-- +goose Down
ALTER TABLE command DROP COLUMN due_at;
