-- A page of one user's deposits, newest first, with how many there are and how
-- many rows say so. Where these differ some were taken back, and the same is
-- asked again without them. A user's rows are few and lie together: to read some
-- columns first, or to look for them by other projections, costs more.
SELECT {{template "deposit"}}, sum(sign) OVER () AS total, count() OVER () AS said
FROM {db:Identifier}.deposits
WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND {{if .Live}}sign = 1 AND seq NOT IN (
    SELECT retracts FROM {db:Identifier}.deposits WHERE user = toFixedString(unhex({user:String}), 20) AND sign = -1 AND seq <= {seq:UInt64})
  {{- else}}sign != 0{{end}}
  AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'by_user', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0
