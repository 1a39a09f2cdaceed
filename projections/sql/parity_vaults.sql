-- Totals of vaults.
SELECT lower(hex(vault)), sum(deposits), toString(sum(deposited)), sum(requests), toString(sum(estimated)), toString(sum(withdrawn)), sum(vault_user)
FROM {database}.flows
WHERE seq <= {seq:UInt64} AND sign != 0
GROUP BY vault
ORDER BY vault
