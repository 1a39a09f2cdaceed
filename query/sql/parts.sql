{{- /* Rows with sign 0 only say how far their table is. Their vault, user and partner are 0: a question that names one of these needs no
condition to keep them out, which costs the engine more to plan than to check. Only of users a client may name 0: there they change no
sum, and a list of deposits leaves them out. */ -}}
{{- /* For a question that no projection answers: to find that out took up to a third of its time. */ -}}
{{define "by_row"}}SETTINGS optimize_use_projections = 0{{end}}

{{- /* The same where nearly all rows of what is read are wanted, of which the engine need not read some columns first. */ -}}
{{define "whole_rows"}}{{template "by_row"}}, optimize_move_to_prewhere = 0{{end}}

{{- /* For a question with a UNION: see unhurried in sql.go. */ -}}
{{define "newer_analyzer"}}enable_analyzer = 1{{end}}

{{define "queue_bit"}}bitShiftLeft(toInt256(1), request_index % 256){{end}}

{{define "waits"}}waiting * expires_ts != 0{{end}}

{{define "queue_sums" -}}
vault, intDiv(request_index, 256) AS bucket, sum(open * {{template "queue_bit"}}) AS queued,
  sum(waiting * (expires_ts != 0) * {{template "queue_bit"}}) AS expiring, sum(waiting) AS unfunded, sum(waiting * estimate) AS amount, max(seq) AS last
{{- end}}

{{define "queue" -}}
SELECT {{template "queue_sums"}}
FROM {db:Identifier}.requests
WHERE {{if .}}{{.}} AND {{end}}vault = {vault:FixedString(20)}
GROUP BY vault, bucket
{{- end}}

{{define "due"}}expires_ts != 0 AND expires_ts <= {now:UInt64}{{end}}

{{define "status" -}}
multiIf(claimed > 0, 'claimed', cancelled > 0, 'cancelled', funded > 0, 'queued',
  expired > 0 OR ({{template "due"}}), 'expired', 'queued')
{{- end}}

{{define "request_states"}}
  SELECT vault, request_index, countIf(k = 'requested') AS requested,
    argMinIf(u, name, k = 'requested') AS user, argMinIf(rc, name, k = 'requested') AS receiver, argMinIf(p, name, k = 'requested') AS partner,
    argMinIf(s, name, k = 'requested') AS shares, argMinIf(e, name, k = 'requested') AS estimate, argMinIf(x, name, k = 'requested') AS expires_ts,
    argMinIf(t, name, k = 'requested') AS requested_ts, argMinIf(b, name, k = 'requested') AS requested_block,
    argMinIf(h, name, k = 'requested') AS tx, argMinIf(i, name, k = 'requested') AS log_index,
    countIf(k = 'funded') AS funded, argMinIf(t, name, k = 'funded') AS funded_ts, argMinIf(a, name, k = 'funded') AS funded_assets,
    countIf(k = 'claimed') AS claimed, argMinIf(t, name, k = 'claimed') AS claimed_ts, sumIf(a, k = 'claimed') AS claimed_assets,
    countIf(k = 'cancelled') AS cancelled, argMinIf(t, name, k = 'cancelled') AS cancelled_ts,
    countIf(k = 'expired') AS expired, argMinIf(t, name, k = 'expired') AS expired_ts
  FROM (
    SELECT vault, request_index, if(sign > 0, seq, retracts) AS name, any(kind) AS k, any(r.user) AS u, any(r.receiver) AS rc, any(r.partner) AS p,
      any(r.shares) AS s, any(r.estimate) AS e, any(r.expires_ts) AS x, any(assets) AS a, any(ts) AS t, any(r.block) AS b, any(r.tx) AS h, any(r.log_index) AS i
    FROM {db:Identifier}.requests AS r
    WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND seq <= {lastLog:UInt64} AND r.block <= {block:UInt64}
    GROUP BY vault, request_index, name HAVING sum(sign) > 0
  )
  GROUP BY vault, request_index HAVING requested > 0
{{end}}

{{define "user_flows" -}}
PREWHERE user = {user:FixedString(20)}
WHERE seq <= {lastLog:UInt64} AND block <= {block:UInt64}
{{- end}}

{{define "user_deposits" -}}
FROM {db:Identifier}.deposits
WHERE user = {user:FixedString(20)} AND vault = {vault:FixedString(20)}
  AND seq <= {lastLog:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
{{- end}}

{{- /* A user's rows are few and lie together: to read some columns first, or to look for them by other projections, costs more. */ -}}
{{define "by_user"}}SETTINGS preferred_optimize_projection_name = 'by_user', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0{{end}}

{{- /* The numbers of a vault's deposits lie together there. */ -}}
{{define "by_number"}}SETTINGS preferred_optimize_projection_name = 'by_number', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0{{end}}

{{define "user_withdrawals" -}}
FROM {db:Identifier}.requests
WHERE user = {user:FixedString(20)} AND vault = {vault:FixedString(20)}
  AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
{{- end}}

{{define "user_live" -}}
AND sign = 1
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.requests WHERE user = {user:FixedString(20)} AND sign = -1 AND seq <= {lastLog:UInt64})
{{- end}}

{{define "user_wanted" -}}
SELECT vault, request_index {{template "user_withdrawals"}} {{template "user_live"}}
{{- end}}

{{define "deposit" -}}
vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index
{{- end}}

{{define "nav" -}}
vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index, sign
{{- end}}
