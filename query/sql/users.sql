-- A page of the users of now. The inner question goes through the first rows in
-- the order of the page, and stops early, for it sorts as a projection does; the
-- outer one takes all the rows up to the last key seen, so that neither users
-- with equal keys are parted nor a state from the row that takes it back. Where
-- too many of the rows cancel out, the caller asks again with a larger scan.
SELECT user, deposited, withdrawn, first_ts
FROM {db:Identifier}.users
WHERE sign != 0 AND seq <= {seq:UInt64} AND {{.Key}} {{if .Descending}}>={{else}}<={{end}} (
  SELECT {{if .Descending}}min{{else}}max{{end}}(key)
  FROM (
    SELECT {{.Key}} AS key
    FROM {db:Identifier}.users
    WHERE sign != 0 AND seq <= {seq:UInt64}
    ORDER BY {{.Key}} {{if .Descending}}DESC{{else}}ASC{{end}} LIMIT {scan:UInt64}
  ))
GROUP BY user, since, deposited, withdrawn, first_ts HAVING sum(sign) > 0
ORDER BY {{template "user_order" .}} LIMIT {limit:UInt64} OFFSET {offset:UInt64}
