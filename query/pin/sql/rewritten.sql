-- A record between two seqs, if there is one, that changed what was said of the blocks up to one. Logs that take nothing
-- back lie above what was indexed, but for those of a unit that rewrites the past, and those of a vault that joins late, which
-- are in no other table.
SELECT seq
FROM records
WHERE kind IN ('log', 'block') AND NOT passed AND (sign = -1 OR kind = 'log') AND seq > {proven:UInt64} AND seq <= {until:UInt64} AND block <= {block:UInt64}
LIMIT 1
