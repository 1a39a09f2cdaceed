-- The number of rows of events in a range of seqs, and a fingerprint of them. The fingerprint does not depend on
-- their order, their writer, or whether the generation skips them.
SELECT count(), sum(cityHash64(* EXCEPT (writer, passed)))
FROM events
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
