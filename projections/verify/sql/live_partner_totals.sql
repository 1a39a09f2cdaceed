-- The live rows of partner_totals, the cursor row first, and how often each is there; of a sample of the partners.
SELECT is_cursor, max(seq), concatWithSeparator(' ', toString(partner), lower(hex(vault)), toString(from_block), toString(until_block),
  toString(deposits), toString(volume), toString(sum(sign)))
FROM partner_totals
WHERE is_cursor OR partner % {n:UInt64} = {k:UInt64}
GROUP BY partner, vault, from_block, until_block, deposits, volume, partner = 0 AS is_cursor
HAVING sum(sign) != 0
ORDER BY partner, vault, until_block, from_block, deposits, volume
SETTINGS optimize_aggregation_in_order = 1
