-- Every record about a vault; the caller folds them in the order of the log. passed: the generation contains no other
-- records of the vault, because it joined after the lists were built or was removed before the generation was made.
SELECT seq, sign, retracts, passed, payload
FROM events
WHERE record = 'vault' AND seq <= {seq:UInt64}
ORDER BY seq
