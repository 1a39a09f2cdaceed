-- Every record about a vault, to be folded in the order of the log. passed: this generation has nothing else about the
-- vault, which joined after it was derived, or was removed before it was made.
SELECT seq, sign, retracts, passed, payload
FROM records
WHERE kind = 'vault' AND seq <= {seq:UInt64}
ORDER BY seq
