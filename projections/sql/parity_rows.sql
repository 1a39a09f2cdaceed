-- How many rows say something, and a fingerprint of them in which their order
-- and their writer do not count.
SELECT count(), sum(cityHash64(* EXCEPT (writer)))
FROM {database}.{table}
WHERE seq > {from:UInt64} AND seq <= {seq:UInt64} AND sign != 0
