-- Between which seqs the logs of each span of blocks are and how many, from the
-- projection of that name, or of those after a seq.
SELECT intDiv(block, {{.}}) AS span, min(seq) AS low, max(seq) AS high, count() AS logs
FROM {db:Identifier}.records
WHERE kind = 'log' AND seq > {since:UInt64}
GROUP BY kind, intDiv(block, {{.}})
ORDER BY span
