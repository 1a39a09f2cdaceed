-- The buckets of the queue by the logs of some blocks.
SELECT {{template "queue_sums"}}
FROM {db:Identifier}.records
WHERE kind = 'log' AND (open != 0 OR waiting != 0) AND vault = {vault:FixedString(20)}
  AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault, bucket
{{template "by_row"}}
