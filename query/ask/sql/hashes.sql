-- The block hashes of some logs and samples.
SELECT seq, hash
FROM events
WHERE record IN ('log', 'sample') AND sub = 0 AND block IN ({blocks}) AND seq IN ({seqs})
