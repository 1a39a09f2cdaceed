-- Which of some logs were retracted, and by which records.
SELECT seq, retracts
FROM events
WHERE record = 'log' AND sub = 0 AND sign = -1 AND seq <= {seq:UInt64} AND block IN ({blocks}) AND retracts IN ({seqs})
