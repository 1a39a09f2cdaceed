-- The vault records of the log up to a seq.
SELECT seq, passed, payload
FROM events
WHERE record = 'vault' AND sign > 0 AND seq <= {seq:UInt64}
ORDER BY seq
