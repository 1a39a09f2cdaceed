-- +goose Up

-- For how long each program was seen running on a day (UTC), and in its role. Several instances
-- that run at the same time count once. Written with program_status; rows are kept for 100 days.
CREATE TABLE uptime (
  program text NOT NULL,
  day date NOT NULL,
  began_at timestamptz NOT NULL,
  -- The times up to which the two are counted; working_at is NULL until the program is in its role.
  running_at timestamptz NOT NULL,
  working_at timestamptz,
  running_ms bigint NOT NULL DEFAULT 0,
  working_ms bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (program, day)
);

-- +goose Down
DROP TABLE uptime;
