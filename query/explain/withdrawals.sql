-- Whose some logs about withdrawal requests are, and when and where they were made.
SELECT seq, user, ts, tx
FROM withdrawal_events
WHERE (vault, request_index) IN ({names}) AND has({seqs:Array(UInt64)}, seq)
SETTINGS optimize_use_projections = 0
