-- Of the logs of some blocks the last seq up to a block, and the first one after.
SELECT ifNull(maxOrNullIf(r.seq, block <= {block:UInt64}), 0) AS seq, ifNull(minOrNullIf(r.seq, block > {block:UInt64}), 18446744073709551615) AS next
FROM {db:Identifier}.records AS r
WHERE kind = 'log' AND block >= {from:UInt64} AND block <= {to:UInt64}
{{template "by_row"}}
