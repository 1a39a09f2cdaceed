-- The seqs that a table has rows of, and those that it must have rows of by
-- records: how many each, and a fingerprint of them that any hole or double changes.
SELECT found.1, found.2, wanted.1, wanted.2
FROM (SELECT
  (SELECT (count(), sum(cityHash64(seq))) FROM {database}.{table} WHERE seq <= {seq:UInt64} AND sign != 0) AS found,
  (SELECT (count(), sum(cityHash64(seq))) FROM {database}.records
    WHERE seq <= {seq:UInt64} AND kind = 'log' AND event IN ({events}) AND NOT quarantined) AS wanted)
