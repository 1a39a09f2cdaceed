// Deposits and withdrawal requests as table rows on the pages of users and of vaults.
import { inAsset, inShares, Amount } from "./amount"
import { Age, BlockLink, Time, TxLink, UserLink, VaultLink } from "./names"
import { type Column, Table } from "./table"
import type { Deposit, Vault, Withdrawal } from "../types"

/** Which of the two ends of a row the page is about; that one is not repeated in the rows. */
interface Props<Row> {
  rows: Row[]
  vaults: Vault[]
  of: "user" | "vault"
}

function vaultOf(vaults: Vault[], address: string): Vault | undefined {
  return vaults.find((vault) => vault.address === address)
}

export function amountIn(vaults: Vault[], address: string, value: string | null) {
  const vault = vaultOf(vaults, address)
  return vault === undefined ? null : <Amount value={value} unit={inAsset(vault.asset)} symbol />
}

export function sharesIn(vaults: Vault[], address: string, value: string | null) {
  const vault = vaultOf(vaults, address)
  return vault === undefined ? null : <Amount value={value} unit={inShares(vault)} />
}

function who<Row extends { vaultAddress: string; vaultName: string; userAddress: string }>(of: "user" | "vault"): Column<Row> {
  return of === "user"
    ? { title: "Vault", cell: (row) => <VaultLink address={row.vaultAddress} name={row.vaultName} /> }
    : { title: "User", cell: (row) => <UserLink address={row.userAddress} /> }
}

function partner(id: number | undefined) {
  return id === undefined ? <span class="faint">&ndash;</span> : id
}

export function Deposits({ rows, vaults, of }: Props<Deposit>) {
  return (
    <Table<Deposit>
      caption="Deposits"
      rows={rows}
      id={(deposit) => deposit.id}
      columns={[
        { title: "Block", number: true, cell: (deposit) => <BlockLink number={deposit.blockNumber} /> },
        { title: "Time, UTC", cell: (deposit) => <Time iso={deposit.timestamp} /> },
        who<Deposit>(of),
        { title: "Amount", number: true, cell: (deposit) => amountIn(vaults, deposit.vaultAddress, deposit.assetAmount) },
        { title: "Shares", number: true, cell: (deposit) => sharesIn(vaults, deposit.vaultAddress, deposit.shares) },
        { title: "Swept, UTC", cell: (deposit) => (deposit.sweptAt === null ? <span class="badge warn">pending</span> : <Time iso={deposit.sweptAt} />) },
        { title: "Partner", number: true, cell: (deposit) => partner(deposit.partnerId) },
        { title: "Transaction", cell: (deposit) => <TxLink hash={deposit.txHash} /> },
      ]}
    />
  )
}

type Staged = Pick<Withdrawal, "claimable" | "status">

/** The stage that a request has reached, in a word. */
export const stage = ({ claimable, status }: Staged) => (claimable ? "claimable" : status === "queued" ? "pending" : status)

export function Stage({ of }: { of: Staged }) {
  return <span class={`badge ${of.claimable ? "good" : of.status === "queued" ? "warn" : ""}`}>{stage(of)}</span>
}

/** The stage that a request has reached, and since when. */
function RequestState({ request }: { request: Withdrawal }) {
  const since = request.cancelledAt ?? request.claimedAt ?? request.expiredAt ?? request.fundedAt
  return (
    <span class="state">
      <Stage of={request} /> {since !== null && <Time iso={since} />}
    </span>
  )
}

/** What can be or was claimed for a request. */
function funded(vaults: Vault[], request: Withdrawal) {
  if (request.claimable) return amountIn(vaults, request.vaultAddress, request.assetsClaimable)
  return request.status === "claimed" ? amountIn(vaults, request.vaultAddress, request.assetsClaimed) : <span class="faint">&ndash;</span>
}

interface WithdrawalProps extends Props<Withdrawal> {
  /** The position in the queue of the first row; without it the list is not a queue. */
  place?: number
}

export function Withdrawals({ rows, vaults, of, place }: WithdrawalProps) {
  const order = new Map(rows.map((request, index) => [request.id, (place ?? 1) + index]))
  const columns: Column<Withdrawal>[] = [
    { title: "Request", number: true, cell: (request) => request.requestIndex },
    { title: "Block", number: true, cell: (request) => <BlockLink number={request.blockNumber} /> },
    place === undefined ? { title: "Requested, UTC", cell: (request) => <Time iso={request.requestedAt} /> } : { title: "Pending for", cell: (request) => <Age iso={request.requestedAt} ago={false} /> },
    who<Withdrawal>(of),
    { title: "Shares", number: true, cell: (request) => sharesIn(vaults, request.vaultAddress, request.shares) },
    { title: "Estimated amount", number: true, cell: (request) => amountIn(vaults, request.vaultAddress, request.assetsEstimate) },
    { title: "Funded amount", number: true, cell: (request) => funded(vaults, request) },
    { title: "State", cell: (request) => <RequestState request={request} /> },
    { title: "Expires, UTC", cell: (request) => <Time iso={request.expiresAt} /> },
    { title: "Partner", number: true, cell: (request) => partner(request.partnerId) },
    { title: "Transaction", cell: (request) => <TxLink hash={request.txHash} /> },
  ]
  if (place !== undefined) columns.unshift({ title: "Order", number: true, cell: (request) => order.get(request.id) })
  return <Table<Withdrawal> caption={place === undefined ? "Withdrawal requests" : "Withdrawal queue"} rows={rows} id={(request) => request.id} columns={columns} mark={(request) => (request.claimable ? "claimable" : undefined)} />
}
