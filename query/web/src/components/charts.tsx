// NAV, total assets, flows and users of a vault over a range. The shortest range shows the individual NAV updates;
// the others show the series of the API, whose points are whole hours, days or weeks.
import { useMemo, useState } from "preact/hooks"
import { type Asked, useAnswer, useSteady } from "../answers"
import { count, exact, group, scaled } from "../format"
import { asOf, here, usePlace } from "../router"
import type { Meta, Nav, Series, VaultDetail } from "../types"
import { Chart, type Line } from "./chart"
import { Files } from "./files"
import { Empty, Shown } from "./state"

interface Range {
  name: string
  title: string
  interval: "hour" | "day" | "week"
  /** How far back, in days; null: to the beginning. */
  days: number | null
}

const ranges: Range[] = [
  { name: "updates", title: "Latest updates", interval: "hour", days: 2 },
  { name: "7", title: "7 days", interval: "hour", days: 7 },
  { name: "30", title: "30 days", interval: "day", days: 30 },
  { name: "90", title: "90 days", interval: "day", days: 90 },
  { name: "365", title: "365 days", interval: "day", days: 365 },
  { name: "all", title: "All", interval: "week", days: null },
]

const DAY = 86_400_000
/** Seconds of an interval. */
const seconds = { hour: 3600, day: 86_400, week: 604_800 }
/** How many NAV updates are drawn individually. */
const UPDATES = 100
/** The number of days from which a chart of a month is more useful than the updates. */
const ENOUGH = 7

export function Charts({ vault, days }: { vault: VaultDetail; days: number }) {
  const place = usePlace()
  const [usual] = useState(() => (days >= ENOUGH ? "30" : "updates"))
  const range = ranges.find(({ name }) => name === (place.query.get("range") ?? usual)) ?? ranges[0]!
  // Ranges end with the newest NAV, at a past block too.
  const newest = vault.navUpdatedAt
  const from = newest === null || range.days === null ? null : new Date(Date.parse(newest) - range.days * DAY).toISOString()
  const at = { address: vault.address }
  const shown = { path: at, query: { interval: range.interval, from } }
  const subject = `${vault.address} ${range.name} ${asOf(place) ?? ""}`
  const series = useSteady(useAnswer(newest === null ? null : "/api/v1/vaults/{address}/series", shown), subject)
  const updates = useSteady(useAnswer(range === ranges[0] && newest !== null ? "/api/v1/vaults/{address}/nav" : null, { path: at, query: { pageSize: UPDATES } }), subject)
  if (newest === null) return <Empty>No NAV update yet. The charts begin with the first one.</Empty>
  return (
    <>
      <nav class="ranges" aria-label="Range of the charts">
        {ranges.map((other) => (
          <a key={other.name} href={here(place, { range: other.name })} aria-current={other === range ? "true" : undefined}>
            {other.title}
          </a>
        ))}
      </nav>
      <div class="charts">
        {range === ranges[0] ? <OfUpdates asked={updates} vault={vault} /> : <OfSeries asked={series} vault={vault} range={range} />}
        <Flows asked={series} vault={vault} range={range} />
      </div>
      <p class="faint">Drag across the chart to zoom in.</p>
      <Files path="/api/v1/vaults/{address}/series" params={shown} />
    </>
  )
}

function OfUpdates({ asked, vault }: { asked: Asked<Nav[], Meta>; vault: VaultDetail }) {
  const navs = asked.answer?.data
  const { symbol, decimals } = vault.asset
  const [times, nav, assets] = useMemo((): [number[], Line[], Line[]] => {
    const rows = [...(navs ?? [])].reverse()
    return [
      rows.map((row) => Date.parse(row.timestamp) / 1000),
      [steps(rows, "NAV", "--accent", (row) => row.navPerShare, 18)],
      [steps(rows, symbol, "--good", (row) => row.totalAssets, decimals)],
    ]
  }, [navs, symbol, decimals])
  return (
    <Shown asked={asked}>
      {(_, meta) => {
        const which = meta.total > UPDATES ? `the newest ${UPDATES} of ${group(String(meta.total))} updates` : `all ${count(meta.total, "update")}`
        return (
          <>
            <Chart title={`NAV per share, ${which}`} times={times} lines={nav} />
            <Chart title={`Total assets, ${symbol}, ${which}`} times={times} lines={assets} />
          </>
        )
      }}
    </Shown>
  )
}

function OfSeries({ asked, vault, range }: { asked: Asked<Series, undefined>; vault: VaultDetail; range: Range }) {
  const points = asked.answer?.data.points
  const { symbol, decimals } = vault.asset
  const [times, nav, assets] = useMemo((): [number[], Line[], Line[]] => {
    const rows = points ?? []
    return [
      rows.map((row) => Date.parse(row.start) / 1000),
      [
        steps(rows, "high", "--edge", (row) => row.nav?.high ?? null, 18),
        steps(rows, "low", "--edge", (row) => row.nav?.low ?? null, 18),
        steps(rows, "close", "--accent", (row) => row.nav?.close ?? null, 18),
      ],
      [steps(rows, symbol, "--good", (row) => row.totalAssets, decimals)],
    ]
  }, [points, symbol, decimals])
  return (
    <Shown asked={asked}>
      {() => (
        <>
          <Chart title={`NAV per share by ${range.interval}`} times={times} lines={nav} step={seconds[range.interval]} />
          <Chart title={`Total assets by ${range.interval}, ${symbol}, at its end`} times={times} lines={assets} step={seconds[range.interval]} />
        </>
      )}
    </Shown>
  )
}

function Flows({ asked, vault, range }: { asked: Asked<Series, undefined>; vault: VaultDetail; range: Range }) {
  const points = asked.answer?.data.points
  const { symbol, decimals } = vault.asset
  // The voids of an interval may exceed its deposits.
  const voids = points?.some((row) => row.deposits.assets.startsWith("-")) ?? false
  const [times, flows, requests, users] = useMemo((): [number[], Line[], Line[], Line[]] => {
    const rows = points ?? []
    return [
      rows.map((row) => Date.parse(row.start) / 1000),
      [
        { label: "deposited", colour: "--good", kind: "bars", values: rows.map((row) => scaled(row.deposits.assets, decimals)), texts: rows.map((row) => `${exact(row.deposits.assets, decimals)} (${row.deposits.count})`) },
        { label: "claimed", colour: "--warn", kind: "bars", values: rows.map((row) => -scaled(row.claimed.assets, decimals)), texts: rows.map((row) => `${exact(row.claimed.assets, decimals)} (${row.claimed.count})`) },
      ],
      [{ label: "requests", colour: "--accent", kind: "bars", values: rows.map((row) => row.requested.count), texts: rows.map((row) => `${group(String(row.requested.count))}, estimated ${exact(row.requested.assets, decimals)} ${symbol}`) }],
      [{ label: "users", colour: "--accent", kind: "steps", values: rows.map((row) => row.users), texts: rows.map((row) => `${group(String(row.users))} (${group(String(row.newUsers))} new)`) }],
    ]
  }, [points, decimals, symbol])
  return (
    <Shown asked={asked}>
      {() => (
        <>
          <Chart title={`Flows by ${range.interval}, ${symbol}: ${voids ? "deposits less void ones" : "deposits above"}, claims below`} times={times} lines={flows} step={seconds[range.interval]} />
          <Chart title={`Withdrawal requests by ${range.interval}`} times={times} lines={requests} step={seconds[range.interval]} whole />
          <Chart title={`Users by ${range.interval}`} times={times} lines={users} step={seconds[range.interval]} whole />
        </>
      )}
    </Shown>
  )
}

/** A line of amounts; a row without one has no height. */
function steps<Row>(rows: Row[], label: string, colour: string, of: (row: Row) => string | null, decimals: number): Line {
  const amounts = rows.map(of)
  return {
    label,
    colour,
    kind: "steps",
    values: amounts.map((native) => (native === null ? null : scaled(native, decimals))),
    texts: amounts.map((native) => (native === null ? "–" : exact(native, decimals))),
  }
}
