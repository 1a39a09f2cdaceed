-- The newest live block record: how far the chain is indexed, and what time it
-- is there. Of one height the newest row decides, for retractions come newest
-- first: at most one record is live, and it is the last that was added. It looks
-- at the last rows only; where a reorganisation took all of them back, the
-- caller asks again with a larger scan. A height that the scan cuts through
-- lacks its oldest rows, which may hide a live record but never shows another.
SELECT block, argMaxIf(time, seq, sign = 1) AS ts
FROM (
  SELECT block, r.ts AS time, seq, sign
  FROM {db:Identifier}.records AS r
  WHERE kind = 'block' AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY block DESC, seq DESC LIMIT {scan:UInt64}
)
GROUP BY block HAVING sum(sign) > 0
ORDER BY block DESC LIMIT 1
{{template "by_row"}}
