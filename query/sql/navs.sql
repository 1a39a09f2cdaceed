-- A page of a vault's NAV history, newest first. Of one place in the chain the
-- newest row is read first, so that what the scan cuts off leaves no NAV that is
-- not there, and says what the live one says.
SELECT {{template "nav"}}
FROM (
  SELECT *
  FROM {db:Identifier}.navs
  WHERE vault = toFixedString(unhex({vault:String}), 20) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ts >= {from:Int64} AND ts <= {to:Int64}
  ORDER BY vault DESC, block DESC, log_index DESC, seq DESC LIMIT {scan:UInt64}
) AS r
GROUP BY vault, block, log_index HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_row"}}
