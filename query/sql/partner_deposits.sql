-- A page of the deposits attributed to one partner, newest first, by the
-- projection by_partner.
SELECT {{template "deposit"}}
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32}
  {{- if .Live}} AND sign = 1 AND seq NOT IN (
    SELECT retracts FROM {db:Identifier}.deposits WHERE partner = {partner:UInt32} AND sign = -1 AND seq <= {lastLog:UInt64})
  {{- end}} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
ORDER BY partner DESC, block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'by_partner', optimize_move_to_prewhere = 0
