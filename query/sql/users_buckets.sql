-- How many users each bucket of a list holds at seq: what the projection totals
-- says of all rows, without the newer ones, which ix_seq finds. Both parts must
-- see the same rows, for which there is a setting.
SELECT bucket, toUInt64(sum(n)) AS users
FROM (
  SELECT bucket, sum(sign) AS n FROM {db:Identifier}.rankings WHERE list = '{{.List}}' GROUP BY bucket
  UNION ALL
  SELECT bucket, -sum(sign) FROM {db:Identifier}.rankings WHERE list = '{{.List}}' AND seq > {seq:UInt64} GROUP BY bucket
)
GROUP BY bucket HAVING sum(n) > 0
ORDER BY bucket
SETTINGS enable_shared_storage_snapshot_in_query = 1
