-- The seqs that a table has rows of, and those that it must have rows of by the
-- spine: how many each, and a fingerprint of them that any hole or double changes.
SELECT found.1, found.2, wanted.1, wanted.2
FROM (SELECT
  (SELECT (count(), sum(cityHash64(seq))) FROM {table} WHERE seq <= {seq:UInt64}) AS found,
  (SELECT (count(), sum(cityHash64(seq))) FROM records
    WHERE seq <= {seq:UInt64} AND kind = 'log' AND event IN ({events}) AND NOT quarantined AND NOT passed) AS wanted)
