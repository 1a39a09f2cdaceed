{{define "status" -}}
multiIf(claimed > 0, 'claimed', cancelled > 0, 'cancelled', funded > 0, 'queued',
  expired > 0 OR (expires_ts != 0 AND {now:UInt64} >= expires_ts), 'expired', 'queued')
{{- end}}

{{define "request_state" -}}
vault, request_index, user, receiver, partner, shares, estimate, expires_ts, requested, requested_ts, requested_block, tx, log_index,
  funded, funded_ts, funded_assets, claimed, claimed_ts, claimed_assets, cancelled, cancelled_ts, expired, expired_ts
{{- end}}

{{define "deposit" -}}
vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index
{{- end}}

{{define "user_order"}}{{.Key}} {{if .Descending}}DESC{{else}}ASC{{end}}, user ASC{{end}}
