-- How many rows a table has in a range of seqs, and a fingerprint of them in which
-- their order does not count, nor who wrote them.
SELECT count(), sum(cityHash64(* EXCEPT ({unsaid})))
FROM {table}
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64} AND {both}
