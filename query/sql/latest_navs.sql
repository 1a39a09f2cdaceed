-- The newest NAV of some vaults: where it is first, out of few columns, and
-- then what it says. Of a log that came back after a reorganisation the last
-- row is the live one.
SELECT vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index
FROM {db:Identifier}.navs
WHERE (vault, block, log_index) IN (
    SELECT vault, block, log_index
    FROM {db:Identifier}.navs
    WHERE vault IN ({{.}}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    GROUP BY vault, block, log_index HAVING sum(sign) > 0
    ORDER BY block DESC, log_index DESC LIMIT 1 BY vault
  )
  AND sign = 1 AND seq <= {seq:UInt64}
ORDER BY vault, seq DESC LIMIT 1 BY vault
{{template "by_row"}}
