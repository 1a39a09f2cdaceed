// `/user/ADDRESS`: what a user deposited and withdrew, by asset and by vault, and what is pending.
import { useState } from "preact/hooks"
import { useAnswer } from "../answers"
import { ApiError, url } from "../api"
import { byAsset } from "../assets"
import { Amount, Copy, type Source, inAsset, inNumber } from "../components/amount"
import { Figure, Figures } from "../components/figures"
import { Files } from "../components/files"
import { Deposits, Stage, Withdrawals } from "../components/lists"
import { Age, Outside, Time, VaultLink } from "../components/names"
import { Failed, Shown, Waiting, useArrived } from "../components/state"
import { Paged, Table, pageOf } from "../components/table"
import { useTitle } from "../components/title"
import { csv, ledger } from "../csv"
import { difference, group, shortHex } from "../format"
import { asOf, there, usePlace } from "../router"
import type { UserDetail, Vault, Withdrawal } from "../types"

export function UserPage({ address }: { address: string }) {
  useTitle(`User ${shortHex(address)}`)
  const { query } = usePlace()
  const of = { path: { address } }
  const user = useAnswer("/api/v1/users/{address}", of)
  const vaults = useAnswer("/api/v1/vaults", {})
  const known = user.error === null
  const deposits = useAnswer(known ? "/api/v1/users/{address}/deposits" : null, { ...of, query: { page: pageOf(query, "deposits"), pageSize: 20 } })
  const withdrawals = useAnswer(known ? "/api/v1/users/{address}/withdrawals" : null, { ...of, query: { page: pageOf(query, "withdrawals"), pageSize: 20 } })
  const queued = useAnswer(known ? "/api/v1/users/{address}/withdrawals" : null, { ...of, query: { status: "queued", pageSize: QUEUE } })
  const arrived = useArrived(user, vaults, ...(known ? [deposits, withdrawals, queued] : []))
  const all = vaults.answer?.data ?? []
  return (
    <>
      <h1>
        User <code class="address">{user.answer?.data.address ?? address}</code>
        <Copy text={user.answer?.data.address ?? address} what="the address" />
        <Outside kind="address" value={user.answer?.data.address ?? address} />
      </h1>
      {!arrived ? (
        <Waiting />
      ) : (
        <>
          <Shown asked={user}>{(data) => <Totals data={data} vaults={all} />}</Shown>
          {known && (
            <>
              <Pending data={queued.answer?.data ?? []} vaults={all} />
              <h2>Deposits</h2>
              <Paged asked={deposits} empty="No deposits." parameter="deposits" what="deposit" below={<Files path="/api/v1/users/{address}/deposits" params={of} />}>
                {(rows) => <Deposits rows={rows} vaults={all} of="user" />}
              </Paged>
              <h2>Withdrawal requests</h2>
              <Paged asked={withdrawals} empty="No withdrawal requests." parameter="withdrawals" what="request" below={<Files path="/api/v1/users/{address}/withdrawals" params={of} />}>
                {(rows) => <Withdrawals rows={rows} vaults={all} of="user" />}
              </Paged>
            </>
          )}
        </>
      )}
    </>
  )
}

/** A user's totals in a vault, and where each number is explained. */
interface Holding {
  vault: Vault
  deposits: number
  deposited: string
  requests: number
  withdrawn: string
  source: (field: "deposits/_count" | "deposits/_sum/assetAmount" | "withdrawals/_count" | "withdrawals/_sum/assetsClaimed") => Source | undefined
}

function holdings({ address, holdings }: UserDetail, vaults: Vault[]): Holding[] {
  const path = url("/api/v1/users/{address}", { path: { address } })
  return vaults.flatMap((vault) => {
    const deposited = holdings.deposits.find(({ vaultAddress }) => vaultAddress === vault.address)
    const requested = holdings.withdrawals.find(({ vaultAddress }) => vaultAddress === vault.address)
    if (deposited === undefined && requested === undefined) return []
    return [
      {
        vault,
        deposits: deposited?._count ?? 0,
        deposited: deposited?._sum.assetAmount ?? "0",
        requests: requested?._count ?? 0,
        withdrawn: requested?._sum.assetsClaimed ?? "0",
        source: (field) => {
          const [list, ...rest] = field.split("/")
          return (list === "deposits" ? deposited : requested) === undefined ? undefined : { of: path, field: `/holdings/${list}/${vault.address}/${rest.join("/")}` }
        },
      },
    ]
  })
}

function Totals({ data, vaults }: { data: UserDetail; vaults: Vault[] }) {
  const path = url("/api/v1/users/{address}", { path: { address: data.address } })
  const rows = holdings(data, vaults)
  const totals = byAsset(vaults, (vault) => {
    const row = rows.find((row) => row.vault === vault)
    return row === undefined ? null : { deposited: row.deposited, withdrawn: row.withdrawn }
  })
  // The totals of the API cover all vaults, so they explain the totals of an asset only if there is no other asset.
  const only = totals.length === 1
  const source = (of: (typeof totals)[number], field: "deposits/_sum/assetAmount" | "withdrawals/_sum/assetsClaimed"): Source | undefined =>
    only ? { of: path, field: field.startsWith("deposits") ? "/totalDeposited" : "/totalWithdrawn" } : of.vaults.length === 1 ? rows.find(({ vault }) => vault === of.vaults[0])?.source(field) : undefined
  return (
    <>
      {totals.map((of) => (
        <Figures key={of.asset.address}>
          <Figure wide title={`Total deposited, ${of.asset.symbol}`}><Amount value={of.sums.deposited} unit={inAsset(of.asset)} symbol source={source(of, "deposits/_sum/assetAmount")} /></Figure>
          <Figure wide title={`Total withdrawn, ${of.asset.symbol}`}><Amount value={of.sums.withdrawn} unit={inAsset(of.asset)} symbol source={source(of, "withdrawals/_sum/assetsClaimed")} /></Figure>
          <Figure wide title="Deposited less withdrawn"><Amount value={difference(of.sums.withdrawn, of.sums.deposited)} unit={inAsset(of.asset)} symbol /></Figure>
        </Figures>
      ))}
      <p>Current shares are not shown: navlog does not follow transfers of shares, so it does not know how many a user has or what they are worth.</p>
      <p class="faint">
        First seen <Time iso={data.firstSeen} /> UTC.
      </p>
      <Accountant address={data.address} />
      <h2>By vault</h2>
      <Table<Holding>
        caption="By vault"
        rows={rows}
        id={(row) => row.vault.address}
        columns={[
          { title: "Vault", cell: ({ vault }) => <VaultLink address={vault.address} name={vault.name} /> },
          { title: "Deposits", number: true, cell: (row) => <Amount value={row.deposits} unit={inNumber} source={row.source("deposits/_count")} /> },
          { title: "Total deposited", number: true, cell: (row) => <Amount value={row.deposited} unit={inAsset(row.vault.asset)} symbol source={row.source("deposits/_sum/assetAmount")} /> },
          { title: "Requests", number: true, cell: (row) => <Amount value={row.requests} unit={inNumber} source={row.source("withdrawals/_count")} /> },
          { title: "Total withdrawn", number: true, cell: (row) => <Amount value={row.withdrawn} unit={inAsset(row.vault.asset)} symbol source={row.source("withdrawals/_sum/assetsClaimed")} /> },
        ]}
      />
    </>
  )
}

/** Requests on one page of the queue. */
const QUEUE = 100

/** The user's requests that are in the queue, with their position in it. */
function Pending({ data, vaults }: { data: Withdrawal[]; vaults: Vault[] }) {
  const concerned = vaults.filter((vault) => data.some(({ vaultAddress }) => vaultAddress === vault.address))
  if (data.length === 0) return null
  return (
    <>
      <h2>Pending withdrawals</h2>
      {concerned.map((vault) => (
        <PendingIn key={vault.address} vault={vault} requests={data.filter(({ vaultAddress }) => vaultAddress === vault.address)} />
      ))}
    </>
  )
}

function PendingIn({ vault, requests }: { vault: Vault; requests: Withdrawal[] }) {
  const place = usePlace()
  const queue = useAnswer("/api/v1/queues/withdrawals", { query: { vault: vault.address, pageSize: QUEUE } })
  const order = (request: Withdrawal) => {
    const at = queue.answer?.data.findIndex(({ id }) => id === request.id) ?? -1
    if (at >= 0) return `${at + 1} of ${group(String(queue.answer?.meta.total ?? 0))}`
    return queue.answer === null ? "…" : `after ${QUEUE}`
  }
  return (
    <Table<Withdrawal>
      caption={`Pending withdrawals from ${vault.name}`}
      rows={requests}
      id={({ id }) => id}
      mark={(request) => (request.claimable ? "claimable" : undefined)}
      columns={[
        { title: "Vault", cell: () => <a href={there(place, `/vault/${vault.address}`, { view: "queue" })}>{vault.name}</a> },
        { title: "Request", number: true, cell: (request) => request.requestIndex },
        { title: "Place in the queue", number: true, cell: order },
        { title: "Pending for", cell: (request) => <Age iso={request.requestedAt} ago={false} /> },
        { title: "Estimated amount", number: true, cell: (request) => <Amount value={request.assetsEstimate} unit={inAsset(vault.asset)} symbol /> },
        { title: "State", cell: (request) => <Stage of={request} /> },
      ]}
    />
  )
}

/** Makes a file of all deposits and withdrawals of the user, at the block of the page. */
function Accountant({ address }: { address: string }) {
  const place = usePlace()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const save = async () => {
    setBusy(true)
    setError(null)
    try {
      const { rows, vaults, block } = await ledger(address, asOf(place))
      const link = document.createElement("a")
      link.href = URL.createObjectURL(new Blob([csv(rows, vaults)], { type: "text/csv" }))
      link.download = `${address}-block-${block ?? "newest"}.csv`
      link.click()
      URL.revokeObjectURL(link.href)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setError(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <p>
        <button type="button" class="button primary" disabled={busy} onClick={() => void save()}>
          {busy ? "Exporting…" : "Export CSV for accounting"}
        </button>{" "}
        <span class="faint">Every deposit and withdrawal with decimals and symbols. Its sums are the totals above.</span>
      </p>
      {error !== null && <Failed error={error} again={false} />}
    </>
  )
}
