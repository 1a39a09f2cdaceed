-- Of which blocks some logs are, by hash. They are named by literals, for only of these the engine sees which rows to read.
SELECT seq, hash
FROM records
WHERE kind = 'log' AND block IN ({blocks}) AND seq IN ({seqs})
