-- The end of the last whole unit of the log up to a seq.
SELECT max(r.seq) AS seq FROM {db:Identifier}.records AS r WHERE boundary AND r.seq <= {seq:UInt64}
{{template "by_row"}}
