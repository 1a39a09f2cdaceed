-- How far the sweeps of each vault got: the highest deposit id and the last time
-- of a sweep, and those of one that was taken back: where these are not lower,
-- sweep_states_live.sql has to tell.
SELECT vault, maxIf(to_id, sign = 1) AS last, maxIf(ts, sign = 1) AS last_ts, maxIf(to_id, sign = -1) AS lost, maxIf(ts, sign = -1) AS lost_ts
FROM {db:Identifier}.sweeps
WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
{{template "by_row"}}
