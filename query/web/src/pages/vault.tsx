// `/vault/ADDRESS`: the value of a vault, its yields, and what is pending.
import type { ComponentChildren } from "preact"
import { useAnswer } from "../answers"
import { url } from "../api"
import { Amount, Copy, inAsset, inNav, inNumber, inShares } from "../components/amount"
import { Charts } from "../components/charts"
import { Events, Older } from "../components/events"
import { Files } from "../components/files"
import { Figure, Figures } from "../components/figures"
import { Deposits, Withdrawals } from "../components/lists"
import { Age, BlockLink, Outside, Time, TxLink, UserLink } from "../components/names"
import { Empty, Shown, Waiting, useArrived } from "../components/state"
import { Paged, Table, pageOf } from "../components/table"
import { useTitle } from "../components/title"
import { UsersOf } from "../components/users"
import { Yield, useYields } from "../components/yields"
import { count, duration, group } from "../format"
import { here, usePlace } from "../router"
import type { Deposit, Funding, Nav, Series, Settlement, VaultDetail } from "../types"

export function VaultPage({ address }: { address: string }) {
  const asked = useAnswer("/api/v1/vaults/{address}", { path: { address } })
  const series = useYields(address, asked.answer?.data.navUpdatedAt ?? null)
  const settlement = useAnswer("/api/v1/settlement/summary", {})
  const funding = useAnswer("/api/v1/vaults/{address}/funding", { path: { address } })
  const noNav = asked.answer !== null && asked.answer.data.navUpdatedAt === null
  const arrived = useArrived(asked, noNav ? asked : asked.error !== null ? asked : series, settlement, funding)
  useTitle(asked.answer?.data.name ?? "Vault")
  return (
    <>
      {(asked.answer === null || !arrived) && <h1>{asked.answer?.data.name ?? "Vault"}</h1>}
      {arrived ? (
        <Shown asked={asked}>
          {(vault) => <Of vault={vault} series={series.answer?.data ?? null} pending={settlement.answer?.data.find((entry) => entry.vaultAddress === vault.address) ?? null} funding={funding.answer?.data ?? null} />}
        </Shown>
      ) : (
        <Waiting />
      )}
    </>
  )
}

interface OfProps {
  vault: VaultDetail
  series: Series | null
  pending: Settlement | null
  funding: Funding | null
}

function Of({ vault, series, pending, funding }: OfProps) {
  const path = url("/api/v1/vaults/{address}", { path: { address: vault.address } })
  const summary = (field: string) => ({ of: "/api/v1/settlement/summary", field: `/${vault.address}/${field}` })
  const toFund = pending?.withdrawalsToFund
  // null if the vault has no queue, or while it is unknown.
  const queued = vault.stats.pendingWithdrawals
  const claimable = toFund === undefined || toFund.count === null || queued === null ? null : queued - toFund.count
  return (
    <>
      <h1>
        {vault.name} <span class="faint">{vault.symbol}</span>
      </h1>
      <p class="under">
        <code class="address">{vault.address}</code>
        <Copy text={vault.address} what="the address" />
        <Outside kind="address" value={vault.address} /> <span class="faint">chain {vault.chainId}, from block {group(vault.startBlock)}</span>
      </p>
      <About vault={vault} />
      <Figures>
        <Figure title="NAV per share"><Amount value={vault.navPerShare} unit={inNav} source={{ of: path, field: "/navPerShare" }} /></Figure>
        <Figure wide title="Total assets"><Amount value={vault.totalAssets} unit={inAsset(vault.asset)} symbol source={{ of: path, field: "/totalAssets" }} /></Figure>
        <Figure wide title="Annual yield since the first NAV"><Yield vault={vault} series={series} over="first" annual /></Figure>
        <Figure title="Since the first NAV"><Yield vault={vault} series={series} over="first" /></Figure>
        <Figure title="7 days"><Yield vault={vault} series={series} over={7} /></Figure>
        <Figure title="30 days"><Yield vault={vault} series={series} over={30} /></Figure>
        <Figure title="90 days"><Yield vault={vault} series={series} over={90} /></Figure>
      </Figures>
      <Figures>
        <Figure title="Pending withdrawals">
          <Amount value={toFund?.count ?? null} unit={inNumber} source={summary("withdrawalsToFund/count")} />
        </Figure>
        <Figure wide title="Estimated amount">
          <Amount value={toFund?.totalAmount ?? null} unit={inAsset(vault.asset)} symbol source={summary("withdrawalsToFund/totalAmount")} />
        </Figure>
        <Figure title="Claimable"><Amount value={claimable} unit={inNumber} /></Figure>
        <Figure wide title={`Median wait for funding, ${funding?.days ?? 90} days`}>
          {funding === null || funding.medianSeconds === null ? (
            <span class="faint" title="No request of these days is funded">&ndash;</span>
          ) : (
            <span title={`Of ${count(funding.requests, "request")} since ${funding.since} ${funding.funded} are funded. The longest wait was ${duration(funding.longestSeconds ?? 0)}.`}>{duration(funding.medianSeconds)}</span>
          )}
        </Figure>
        <Figure wide title="Shares"><Amount value={vault.totalSupply} unit={inShares(vault)} symbol source={{ of: path, field: "/totalSupply" }} /></Figure>
        <Figure title="Users"><Amount value={vault.stats.userCount} unit={inNumber} source={{ of: path, field: "/stats/userCount" }} /></Figure>
        <Figure title="NAV updated"><Age iso={vault.stats.lastNavAt} /></Figure>
        <Figure title="Last sweep"><Age iso={vault.stats.lastSweepAt} /></Figure>
        {vault.managementFee !== null && <Figure title="Management fee">{vault.managementFee}&#8201;%</Figure>}
        {vault.performanceFee !== null && <Figure title="Performance fee">{vault.performanceFee}&#8201;%</Figure>}
      </Figures>
      <Views vault={vault} pending={pending} days={series?.sinceFirst?.days ?? 0} />
    </>
  )
}

/** What the operator says about the vault, if anything. */
function About({ vault: { description, link } }: { vault: VaultDetail }) {
  if (description === null && link === null) return null
  return (
    <p class="about">
      {description}{" "}
      {link !== null && (
        <a href={link} target="_blank" rel="noopener noreferrer">
          {new URL(link).host}
        </a>
      )}
    </p>
  )
}

interface ViewProps {
  vault: VaultDetail
  /** What is pending; null while it is unknown. */
  pending: Settlement | null
  /** Whole days since the first NAV. */
  days: number
}

const of = ({ address }: VaultDetail) => ({ path: { address } })

const views: [name: string, title: string, view: (props: ViewProps) => ComponentChildren][] = [
  ["charts", "Charts", ({ vault, days }) => <Charts vault={vault} days={days} />],
  ["queue", "Queue", (props) => <><Queue {...props} />{props.vault.capabilities.sweeps && <ToSweep {...props} />}</>],
  ["deposits", "Deposits", (props) => <DepositList {...props} />],
  ["withdrawals", "Withdrawals", (props) => <WithdrawalList {...props} />],
  ["users", "Users", (props) => <UserList {...props} />],
  ["events", "Events", (props) => <EventList {...props} />],
  ["navs", "NAV updates", (props) => <NavList {...props} />],
]

function Views(props: ViewProps) {
  const place = usePlace()
  const [name, , view] = views.find(([candidate]) => candidate === place.query.get("view")) ?? views[0]!
  return (
    <>
      <nav class="tabs" aria-label="Of this vault">
        {views.map(([other, text]) => (
          <a key={other} href={here(place, { view: other === "charts" ? null : other, page: null, before: null, sortBy: null, sortOrder: null })} aria-current={other === name ? "true" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <div key={name}>{view(props)}</div>
    </>
  )
}

/** How many of the pending deposits are shown; the API lists up to 10,000. */
const SHOWN = 20

function ToSweep({ vault, pending }: ViewProps) {
  const asked = useAnswer("/api/v1/queues/deposits", { query: { vault: vault.address } })
  return (
    <>
      <h2>Deposits to sweep</h2>
      <Shown asked={asked}>
        {(groups) => {
          const waiting = groups[0]
          if (waiting === undefined || waiting.count === 0) return <Empty>Every deposit has been swept. A new deposit is listed here until the vault&rsquo;s next sweep.</Empty>
          const oldest = [...waiting.deposits].sort((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp)).slice(0, SHOWN)
          return (
            <>
              <p>
                <Amount value={waiting.count} unit={inNumber} source={{ of: "/api/v1/settlement/summary", field: `/${vault.address}/depositsToSweep/count` }} /> {waiting.count === 1 ? "deposit is pending" : "deposits are pending"}
                {pending !== null && <>, <Amount value={pending.depositsToSweep.totalAmount} unit={inAsset(vault.asset)} symbol source={{ of: "/api/v1/settlement/summary", field: `/${vault.address}/depositsToSweep/totalAmount` }} /></>}
              </p>
              {oldest.length < waiting.count && <p class="faint">The {SHOWN} oldest:</p>}
              <Table<Deposit>
                caption="Deposits to sweep"
                rows={oldest}
                id={(deposit) => deposit.id}
                columns={[
                  { title: "Pending for", cell: (deposit) => <Age iso={deposit.timestamp} ago={false} /> },
                  { title: "User", cell: (deposit) => <UserLink address={deposit.userAddress} /> },
                  { title: "Amount", number: true, cell: (deposit) => <Amount value={deposit.assetAmount} unit={inAsset(vault.asset)} symbol /> },
                  { title: "Shares", number: true, cell: (deposit) => <Amount value={deposit.shares} unit={inShares(vault)} /> },
                  { title: "Block", number: true, cell: (deposit) => <BlockLink number={deposit.blockNumber} /> },
                  { title: "Transaction", cell: (deposit) => <TxLink hash={deposit.txHash} /> },
                ]}
              />
              <Files path="/api/v1/queues/deposits" params={{ query: { vault: vault.address } }} />
            </>
          )
        }}
      </Shown>
    </>
  )
}

function Queue({ vault, pending }: ViewProps) {
  const { query } = usePlace()
  const page = pageOf(query, "page")
  const size = 20
  const asked = useAnswer("/api/v1/queues/withdrawals", { query: { vault: vault.address, page, pageSize: size } })
  const fund = pending?.withdrawalsToFund
  return (
    <>
      <h2>Withdrawal queue</h2>
      {fund !== undefined && (
        <p>
          <Amount value={fund.count} unit={inNumber} source={{ of: "/api/v1/settlement/summary", field: `/${vault.address}/withdrawalsToFund/count` }} /> {fund.count === 1 ? "request is" : "requests are"} not funded yet. Estimated amount:{" "}
          <Amount value={fund.totalAmount} unit={inAsset(vault.asset)} symbol source={{ of: "/api/v1/settlement/summary", field: `/${vault.address}/withdrawalsToFund/totalAmount` }} />
        </p>
      )}
      <Paged
        asked={asked}
        empty="The queue is empty. A withdrawal request is in the queue until it is claimed, cancelled or expires. Choose an earlier block or time above to see the queue of that time."
        parameter="page"
        what="request"
        below={
          <>
            <Files path="/api/v1/queues/withdrawals" params={{ query: { vault: vault.address } }} />
            <p class="faint">In the order in which the requests are expected to be funded: the oldest first. A claimable request is funded already.</p>
          </>
        }
      >
        {(rows) => <Withdrawals rows={rows} vaults={[vault]} of="vault" place={(page - 1) * size + 1} />}
      </Paged>
    </>
  )
}

function DepositList({ vault }: ViewProps) {
  const { query } = usePlace()
  const asked = useAnswer("/api/v1/vaults/{address}/deposits", { ...of(vault), query: { page: pageOf(query, "page"), pageSize: 50 } })
  return (
    <>
      <h2>Deposits</h2>
      <Paged asked={asked} empty="No deposits into this vault yet." parameter="page" what="deposit" below={<Files path="/api/v1/vaults/{address}/deposits" params={of(vault)} />}>
        {(rows) => <Deposits rows={rows} vaults={[vault]} of="vault" />}
      </Paged>
    </>
  )
}

function WithdrawalList({ vault }: ViewProps) {
  const { query } = usePlace()
  const asked = useAnswer("/api/v1/vaults/{address}/withdrawals", { ...of(vault), query: { page: pageOf(query, "page"), pageSize: 50 } })
  return (
    <>
      <h2>Withdrawal requests</h2>
      <Paged asked={asked} empty="No withdrawal requests yet." parameter="page" what="request" below={<Files path="/api/v1/vaults/{address}/withdrawals" params={of(vault)} />}>
        {(rows) => <Withdrawals rows={rows} vaults={[vault]} of="vault" />}
      </Paged>
    </>
  )
}

function UserList({ vault }: ViewProps) {
  return (
    <>
      <h2>Users</h2>
      <UsersOf vault={vault} />
      <p class="faint">Amounts are those of this vault. A user&rsquo;s page has all vaults.</p>
    </>
  )
}

function EventList({ vault }: ViewProps) {
  const { query } = usePlace()
  const before = query.get("before")
  const asked = useAnswer("/api/v1/vaults/{address}/events", { ...of(vault), query: { before, pageSize: 50 } })
  return (
    <>
      <h2>Events</h2>
      <Shown asked={asked}>
        {(data, meta) => (data.length === 0 ? <Empty>This vault has not emitted an event yet.</Empty> : <><Events rows={data} vaults={[vault]} caption="Events" /><Older meta={meta} before={before} /><Files path="/api/v1/vaults/{address}/events" params={of(vault)} /></>)}
      </Shown>
    </>
  )
}

function NavList({ vault }: ViewProps) {
  const { query } = usePlace()
  const asked = useAnswer("/api/v1/vaults/{address}/nav", { ...of(vault), query: { page: pageOf(query, "page"), pageSize: 50 } })
  return (
    <>
      <h2>NAV updates</h2>
      <Paged asked={asked} empty="No NAV update yet." parameter="page" what="update" below={<Files path="/api/v1/vaults/{address}/nav" params={of(vault)} />}>
        {(rows) => (
          <Table<Nav>
            caption="NAV updates"
            rows={rows}
            id={(nav) => nav.id}
            columns={[
              { title: "Block", number: true, cell: (nav) => <BlockLink number={nav.blockNumber} /> },
              { title: "Time, UTC", cell: (nav) => <Time iso={nav.timestamp} /> },
              { title: "NAV per share", number: true, cell: (nav) => <Amount value={nav.navPerShare} unit={inNav} /> },
              { title: "Total assets", number: true, cell: (nav) => <Amount value={nav.totalAssets} unit={inAsset(vault.asset)} symbol /> },
              { title: "Shares", number: true, cell: (nav) => <Amount value={nav.totalSupply} unit={inShares(vault)} /> },
              { title: "Transaction", cell: (nav) => <TxLink hash={nav.txHash} /> },
            ]}
          />
        )}
      </Paged>
    </>
  )
}
