-- Of which blocks some logs are, by hash.
SELECT seq, hash
FROM events
WHERE record = 'log' AND sub = 0 AND block IN ({blocks}) AND seq IN ({seqs})
