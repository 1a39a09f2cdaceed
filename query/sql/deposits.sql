-- Some deposits, newest first.
SELECT {{template "deposit"}}
FROM {db:Identifier}.deposits
WHERE (vault, deposit_id, seq) IN ({{.}})
ORDER BY block DESC, log_index DESC
{{template "by_row"}}
