-- The buckets of the queue by the rows of some blocks, which the projection
-- edges finds.
{{template "queue" "AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq <= {seq:UInt64}"}}
SETTINGS preferred_optimize_projection_name = 'edges'
