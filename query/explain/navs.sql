-- When and where some NAV updates were made; they are nobody's.
SELECT seq, toFixedString('', 20) AS user, ts, tx
FROM navs
WHERE (vault, block) IN ({names}) AND has({seqs:Array(UInt64)}, seq)
