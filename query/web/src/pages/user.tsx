// `/user/ADDRESS`: what a user has put in and taken out, where, and when.
import { useAnswer } from "../answers"
import { url } from "../api"
import { Amount, Copy, inAsset, inNumber } from "../components/amount"
import { Figure, Figures } from "../components/figures"
import { Files } from "../components/files"
import { Deposits, Withdrawals } from "../components/lists"
import { Time, VaultLink } from "../components/names"
import { inTotal } from "../components/proof"
import { Empty, Shown } from "../components/state"
import { Pages, Table, pageOf } from "../components/table"
import { usePlace } from "../router"
import type { UserDetail, Vault } from "../types"

export function UserPage({ address }: { address: string }) {
  const { query } = usePlace()
  const of = { path: { address } }
  const path = url("/api/v1/users/{address}", of)
  const user = useAnswer("/api/v1/users/{address}", of)
  const vaults = useAnswer("/api/v1/vaults", {}).answer?.data ?? []
  const known = user.error === null
  const deposits = useAnswer(known ? "/api/v1/users/{address}/deposits" : null, { ...of, query: { page: pageOf(query, "deposits"), pageSize: 20 } })
  const withdrawals = useAnswer(known ? "/api/v1/users/{address}/withdrawals" : null, { ...of, query: { page: pageOf(query, "withdrawals"), pageSize: 20 } })
  const unit = inTotal(vaults)
  return (
    <>
      <h1>
        User <code class="address">{user.answer?.data.address ?? address}</code>
        <Copy text={user.answer?.data.address ?? address} what="the address" />
      </h1>
      <Shown asked={user}>
        {(data) => (
          <>
            <Figures>
              <Figure title="Deposited in all"><Amount value={data.totalDeposited} unit={unit} symbol source={{ of: path, field: "/totalDeposited" }} /></Figure>
              <Figure title="Withdrawn in all"><Amount value={data.totalWithdrawn} unit={unit} symbol source={{ of: path, field: "/totalWithdrawn" }} /></Figure>
              <Figure title="First seen, UTC"><Time iso={data.firstSeen} /></Figure>
            </Figures>
            <h2>By vault</h2>
            <Holdings data={data} vaults={vaults} path={path} />
          </>
        )}
      </Shown>
      {known && (
        <>
          <h2>Deposits</h2>
          <Shown asked={deposits}>
            {(data, meta) => (meta.total === 0 ? <Empty>This user has not deposited.</Empty> : <><Deposits rows={data} vaults={vaults} of="user" /><Pages meta={meta} parameter="deposits" what="deposit" /><Files path="/api/v1/users/{address}/deposits" params={of} /></>)}
          </Shown>
          <h2>Withdrawal requests</h2>
          <Shown asked={withdrawals}>
            {(data, meta) => (meta.total === 0 ? <Empty>This user has not asked for a withdrawal.</Empty> : <><Withdrawals rows={data} vaults={vaults} of="user" /><Pages meta={meta} parameter="withdrawals" what="request" /><Files path="/api/v1/users/{address}/withdrawals" params={of} /></>)}
          </Shown>
        </>
      )}
    </>
  )
}

function Holdings({ data, vaults, path }: { data: UserDetail; vaults: Vault[]; path: string }) {
  const rows = vaults.flatMap((vault) => {
    const deposited = data.holdings.deposits.findIndex((holding) => holding.vaultAddress === vault.address)
    const requested = data.holdings.withdrawals.findIndex((holding) => holding.vaultAddress === vault.address)
    return deposited < 0 && requested < 0 ? [] : [{ vault, deposited, requested }]
  })
  return (
    <Table
      caption="By vault"
      rows={rows}
      id={(row) => row.vault.address}
      columns={[
        { title: "Vault", cell: ({ vault }) => <VaultLink address={vault.address} name={vault.name} /> },
        { title: "Deposits", number: true, cell: ({ vault, deposited }) => <Amount value={data.holdings.deposits[deposited]?._count ?? 0} unit={inNumber} source={deposited < 0 ? undefined : { of: path, field: `/holdings/deposits/${vault.address}/_count` }} /> },
        { title: "Deposited", number: true, cell: ({ vault, deposited }) => <Amount value={data.holdings.deposits[deposited]?._sum.assetAmount ?? "0"} unit={inAsset(vault.asset)} symbol source={deposited < 0 ? undefined : { of: path, field: `/holdings/deposits/${vault.address}/_sum/assetAmount` }} /> },
        { title: "Requests", number: true, cell: ({ vault, requested }) => <Amount value={data.holdings.withdrawals[requested]?._count ?? 0} unit={inNumber} source={requested < 0 ? undefined : { of: path, field: `/holdings/withdrawals/${vault.address}/_count` }} /> },
        { title: "Requested, as estimated", number: true, cell: ({ vault, requested }) => <Amount value={data.holdings.withdrawals[requested]?._sum.assetsEstimate ?? "0"} unit={inAsset(vault.asset)} symbol source={requested < 0 ? undefined : { of: path, field: `/holdings/withdrawals/${vault.address}/_sum/assetsEstimate` }} /> },
      ]}
    />
  )
}
