-- The rows of events after a seq, each as a line of text. After 0, this includes rows with seq 0, which no record has.
SELECT {line} AS line
FROM events
WHERE (seq > {after:UInt64} OR {after:UInt64} = 0) AND seq <= {to:UInt64}
ORDER BY seq, sub, line
