-- The vaults that events has records of after a seq, and whether they are passed over.
SELECT DISTINCT vault, passed
FROM events
WHERE record IN ('log', 'vault', 'sample') AND seq > {seq:UInt64}
