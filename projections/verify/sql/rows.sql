-- How many rows events has in a range of seqs, and a fingerprint of them in which their order does not count, nor who
-- wrote them, nor whether the generation passes over them.
SELECT count(), sum(cityHash64(* EXCEPT (writer, passed)))
FROM events
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
