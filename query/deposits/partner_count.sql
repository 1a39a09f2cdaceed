-- How many deposits there are through a partner, and the fence of the table.
SELECT sumIf(toInt64(sign * deposits), partner != 0) AS total, max((fence_seq, fence_block, fence_before)) AS fence
FROM partner_totals
WHERE partner IN (0, {partner:UInt32}) AND from_block <= {block:UInt64} AND until_block > {block:UInt64}
