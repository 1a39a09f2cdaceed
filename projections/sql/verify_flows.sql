-- What each user has in each vault as of a block.
SELECT lower(hex(vault)), lower(hex(user)), sum(deposits), toString(sum(deposited)), sum(requests), toString(sum(estimated)), toString(sum(withdrawn)), sum(vault_user), sum(first_ts)
FROM {database}.flows
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign != 0
GROUP BY vault, user
HAVING sum(deposits) != 0 OR sum(requests) != 0 OR sum(deposited) != 0 OR sum(estimated) != 0 OR sum(withdrawn) != 0 OR sum(vault_user) != 0 OR sum(first_ts) != 0
ORDER BY vault, user
