-- Those of some logs that were retracted, each with the seq of the record that retracts it.
SELECT seq, retracts
FROM events
WHERE record = 'log' AND sub = 0 AND sign = -1 AND seq <= {seq:UInt64} AND block IN ({blocks}) AND retracts IN ({seqs})
