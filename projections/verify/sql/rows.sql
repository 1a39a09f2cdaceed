-- The number of rows of events after a seq, and a fingerprint of them. The fingerprint does not depend on their order,
-- their writer, or whether the generation skips them. After 0, this includes rows with seq 0, which no record has.
SELECT count(), sum(cityHash64(* EXCEPT (writer, passed)))
FROM events
WHERE (seq > {after:UInt64} OR {after:UInt64} = 0) AND seq <= {to:UInt64}
