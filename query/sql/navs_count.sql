-- How many NAVs a vault has, and how many rows say so.
SELECT sum(sign) AS total, count() AS said
FROM {db:Identifier}.navs
WHERE vault = {vault:FixedString(20)} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  AND ts >= {from:Int64} AND ts <= {to:Int64}
{{template "whole_rows"}}
