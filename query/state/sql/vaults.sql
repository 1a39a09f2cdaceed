-- Every record about a vault, to be folded in the order of the log. passed: this generation has nothing else about the
-- vault, which joined after its lists were built, or was removed before it was made.
SELECT seq, sign, retracts, passed, payload
FROM events
WHERE record = 'vault' AND seq <= {seq:UInt64}
ORDER BY seq
