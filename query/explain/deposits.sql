-- Whose some deposits are, and when and where they were made.
SELECT seq, user, ts, tx
FROM deposits
WHERE (vault, deposit_id) IN ({names}) AND has({seqs:Array(UInt64)}, seq)
SETTINGS optimize_use_projections = 0
