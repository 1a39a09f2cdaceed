-- Which of some logs were taken back, and by which records.
SELECT seq, retracts
FROM records
WHERE kind = 'log' AND sign = -1 AND seq <= {seq:UInt64} AND block IN ({blocks}) AND retracts IN ({seqs})
