-- What each user has in each vault as of a block, and since which blocks: sums
-- in which the block of every row counts, so that the past is compared with the present.
SELECT lower(hex(vault)), lower(hex(user)), sum(deposits), toString(sum(deposited)), sum(requests), toString(sum(estimated)), toString(sum(withdrawn)), sum(vault_user), sum(first_ts),
  sum(block * (deposits + requests)), sum(block * vault_user), toString(sum(block * (deposited + estimated + withdrawn)))
FROM {database}.flows
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign != 0
GROUP BY vault, user
HAVING sum(deposits) != 0 OR sum(requests) != 0 OR sum(deposited) != 0 OR sum(estimated) != 0 OR sum(withdrawn) != 0 OR sum(vault_user) != 0 OR sum(first_ts) != 0
  OR sum(block * (deposits + requests)) != 0 OR sum(block * vault_user) != 0 OR sum(block * (deposited + estimated + withdrawn)) != 0
ORDER BY vault, user
