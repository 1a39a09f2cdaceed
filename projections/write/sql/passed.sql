-- Of which vaults events has records after a seq, and whether they are passed over.
SELECT DISTINCT vault, passed
FROM events
WHERE record IN ('log', 'vault', 'sample') AND seq > {seq:UInt64}
