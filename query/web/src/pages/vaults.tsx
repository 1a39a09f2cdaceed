// `/`: the vaults, each with its value, its yields and what is pending.
import { useAnswer } from "../answers"
import { Amount, inAsset, inNav, inNumber, inShares } from "../components/amount"
import { Files } from "../components/files"
import { Age, VaultLink } from "../components/names"
import { Empty, Shown, Waiting, useArrived } from "../components/state"
import { Table } from "../components/table"
import { useTitle } from "../components/title"
import { type Over, Yield, useYields } from "../components/yields"
import type { Vault } from "../types"

export function VaultsPage() {
  useTitle("Vaults")
  const vaults = useAnswer("/api/v1/vaults", {})
  const settlement = useAnswer("/api/v1/settlement/summary", {})
  const arrived = useArrived(vaults, settlement)
  return (
    <>
      <h1>Vaults</h1>
      {!arrived ? (
        <Waiting />
      ) : (
        <>
          <Shown asked={vaults}>
            {(data) =>
              data.length === 0 ? (
                <Empty>No vault is indexed at this block. A vault appears with the block that it was deployed in: choose a later block above.</Empty>
              ) : (
                <Table
                  caption="Vaults"
                  rows={data}
                  id={(vault) => vault.address}
                  columns={[
                    { title: "Vault", cell: (vault) => <span><VaultLink address={vault.address} name={vault.name} /> <span class="faint">{vault.symbol}</span></span> },
                    { title: "NAV per share", number: true, cell: (vault) => <Amount value={vault.navPerShare} unit={inNav} source={{ of: `/api/v1/vaults/${vault.address}`, field: "/navPerShare" }} /> },
                    { title: "Total assets", number: true, cell: (vault) => <Amount value={vault.totalAssets} unit={inAsset(vault.asset)} symbol source={{ of: `/api/v1/vaults/${vault.address}`, field: "/totalAssets" }} /> },
                    { title: "Shares", number: true, cell: (vault) => <Amount value={vault.totalSupply} unit={inShares(vault)} source={{ of: `/api/v1/vaults/${vault.address}`, field: "/totalSupply" }} /> },
                    { title: "Yield, 7 days", number: true, cell: (vault) => <VaultYield vault={vault} over={7} /> },
                    { title: "30 days", number: true, cell: (vault) => <VaultYield vault={vault} over={30} /> },
                    { title: "Since the first NAV", number: true, cell: (vault) => <VaultYield vault={vault} over="first" /> },
                    { title: "NAV updated", cell: (vault) => <Age iso={vault.navUpdatedAt} /> },
                  ]}
                />
              )
            }
          </Shown>
          <h2>Pending</h2>
          <Shown asked={settlement}>
            {(data) => (
              <>
                <Table
                  caption="Pending"
                  rows={data.map((entry) => ({ ...entry, vault: vaults.answer?.data.find((vault) => vault.address === entry.vaultAddress) }))}
                  id={(entry) => entry.vaultAddress}
                  columns={[
                    { title: "Vault", cell: (entry) => <VaultLink address={entry.vaultAddress} name={entry.vaultName} /> },
                    { title: "Deposits to sweep", number: true, cell: (entry) => <Amount value={entry.depositsToSweep.count} unit={inNumber} source={{ of: "/api/v1/settlement/summary", field: `/${entry.vaultAddress}/depositsToSweep/count` }} /> },
                    { title: "Amount", number: true, cell: (entry) => entry.vault && <Amount value={entry.depositsToSweep.totalAmount} unit={inAsset(entry.vault.asset)} symbol source={{ of: "/api/v1/settlement/summary", field: `/${entry.vaultAddress}/depositsToSweep/totalAmount` }} /> },
                    { title: "Pending withdrawals", number: true, cell: (entry) => <Amount value={entry.withdrawalsToFund.count} unit={inNumber} source={{ of: "/api/v1/settlement/summary", field: `/${entry.vaultAddress}/withdrawalsToFund/count` }} /> },
                    { title: "Estimated amount", number: true, cell: (entry) => entry.vault && <Amount value={entry.withdrawalsToFund.totalAmount} unit={inAsset(entry.vault.asset)} symbol source={{ of: "/api/v1/settlement/summary", field: `/${entry.vaultAddress}/withdrawalsToFund/totalAmount` }} /> },
                  ]}
                />
                <Files path="/api/v1/settlement/summary" params={{}} />
              </>
            )}
          </Shown>
        </>
      )}
    </>
  )
}

function VaultYield({ vault, over }: { vault: Vault; over: Over }) {
  return <Yield vault={vault} series={useYields(vault.address, vault.navUpdatedAt).answer?.data ?? null} over={over} />
}
