-- The newest NAV update of a vault, with one of its values; no row if the log does not give that value and the lists
-- derive it from earlier logs.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, change
FROM (
  SELECT seq, sign, block, log_index, sub, if(record = 'sample', 'Sample', event) AS event, vault, user, ts, tx, multiIf({measure:String} = 'supply', shares, {measure:String} = 'assets', assets, nav) AS change,
    multiIf({measure:String} = 'supply', no_shares, {measure:String} = 'assets', no_assets, no_nav) AS derived
  FROM events
  WHERE record IN ('log', 'sample') AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND effect = 'valuation' AND vault = {vault:FixedString(20)} AND sign = 1 AND seq NOT IN ({gone})
  ORDER BY block DESC, log_index DESC, sub DESC
  LIMIT 1
)
WHERE NOT derived
UNION ALL
SELECT seq, sign, block, log_index, sub, if(record = 'sample', 'Sample', event) AS event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record IN ('log', 'sample') AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'valuation' AND vault = {vault:FixedString(20)} AND (sign = -1 OR seq IN ({gone}))
