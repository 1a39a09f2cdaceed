-- The live rows of some partners and vaults that are true after a block.
SELECT partner, vault, from_block, until_block, deposits, volume
FROM partner_totals
WHERE until_block > {ancestor:UInt64} AND (partner, vault) IN (SELECT partner, vault FROM wanted)
GROUP BY partner, vault, from_block, until_block, deposits, volume
HAVING sum(sign) > 0
