-- What the rows of events say, as a fingerprint of each thousand seqs: what a row says in words, hashed, and added up
-- (the sum wraps).
SELECT toUInt64(intDiv(seq - 1, 1000)) AS thousand, count(), sum(reinterpretAsUInt64(SHA256({line})))
FROM events
WHERE seq <= {to:UInt64}
GROUP BY thousand
ORDER BY thousand
