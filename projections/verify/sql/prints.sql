-- A fingerprint of the rows of events for each thousand seqs: the sum of the hashes of their lines of text (the sum
-- wraps).
SELECT toUInt64(intDiv(seq - 1, 1000)) AS thousand, count() AS rows, sum(reinterpretAsUInt64(SHA256({line}))) AS print
FROM events
WHERE seq <= {to:UInt64}
GROUP BY thousand
ORDER BY thousand
