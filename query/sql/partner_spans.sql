-- What a partner brought to each vault in each span of blocks: from the projection
-- totals, or by row where these hold rows later than the pin.
SELECT vault, intDiv(block, {{.Span}}) AS span, sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32}{{if .Rows}} AND seq <= {seq:UInt64}{{end}}
GROUP BY vault, span
