-- Every record about a vault, to be folded in the order of the log. One whose vault joined after the generation was
-- derived (passed) is of a vault that this generation has nothing else about.
SELECT seq, sign, retracts, payload
FROM records
WHERE kind = 'vault' AND passed = 0 AND seq <= {seq:UInt64}
ORDER BY seq
