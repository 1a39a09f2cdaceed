-- The sweeps that hold some deposits, by their ids, of whatever vault of those
-- named, and what took sweeps back; oldest first. PREWHERE leaves few for the
-- comparison with each id.
SELECT seq, sign, retracts, vault, from_id, to_id, ts
FROM {db:Identifier}.sweeps
PREWHERE vault IN ({{.Vaults}}) AND from_id <= {{.Last}} AND to_id >= {{.First}}
WHERE arrayExists(i -> from_id <= i AND i <= to_id, [{{range $i, $id := .IDs}}{{if $i}},{{end}}{{$id}}{{end}}]) AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
ORDER BY block, log_index, seq
{{template "by_row"}}
