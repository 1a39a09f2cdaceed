-- The vaults with records in events after a seq, and whether the generation skips their records.
SELECT DISTINCT vault, passed
FROM events
WHERE record IN ('log', 'vault', 'sample') AND seq > {seq:UInt64}
