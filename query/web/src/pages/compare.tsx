// `/compare`: two fixed blocks, the value of each vault at both, and the events in between.
import { useEffect, useState } from "preact/hooks"
import { useExact, useStatus } from "../answers"
import { Amount, type Unit, inAsset, inNav, inNumber, inShares } from "../components/amount"
import { BlockPicker } from "../components/blocks"
import { firstBlock, useReorganisations } from "../components/chain"
import { Events, Older } from "../components/events"
import { VaultLink } from "../components/names"
import { Empty, Shown, useArrived, Waiting } from "../components/state"
import { Table } from "../components/table"
import { useTitle } from "../components/title"
import { difference, group } from "../format"
import { blockNumber, here, usePlace } from "../router"
import type { Vault } from "../types"

export function ComparePage() {
  const place = usePlace()
  const { status } = useStatus()
  const vaults = useExact("/api/v1/vaults", {})
  const first = firstBlock(vaults.answer?.data ?? [])
  const newest = status?.indexedBlock ?? null
  const marks = useReorganisations(first, newest)
  const usual = useUsual(vaults.answer?.data ?? [], status?.indexedAt ?? null, blockNumber(place.query.get("a")) === null)
  useTitle("Compare two blocks")
  if (first === null || newest === null) return <><h1>Compare two blocks</h1>{status === null ? <Waiting /> : <Shown asked={vaults}>{() => <Empty>There is nothing to compare before the first vault is indexed.</Empty>}</Shown>}</>
  const given = blockNumber(place.query.get("a"))
  if (given === null && usual === undefined) return <><h1>Compare two blocks</h1><Waiting /></>
  const a = given ?? usual ?? first
  const b = blockNumber(place.query.get("b")) ?? newest
  const backwards = BigInt(a) > BigInt(b)
  return (
    <>
      <h1>Compare two blocks</h1>
      <div class="machine pins">
        <div><BlockPicker id="a" label="From block" first={first} newest={newest} block={a} to={(block) => here(place, { a: block, before: null })} marks={marks} /></div>
        <div><BlockPicker id="b" label="To block" first={first} newest={newest} block={b} to={(block) => here(place, { b: block, before: null })} marks={marks} /></div>
      </div>
      {backwards ? (
        <p class="note warned">Block {group(a)} comes after block {group(b)}. <a href={here(place, { a: b, b: a, before: null })}>Swap them</a></p>
      ) : (
        <>
          <Worth a={a} b={b} />
          <Between a={a} b={b} vaults={vaults.answer?.data ?? []} />
        </>
      )}
    </>
  )
}

/** A day, ms. */
const DAY = 86_400_000

/**
 * The block to compare the newest one with if none is chosen: that of a day earlier, but not before the first NAV of the
 * youngest vault, where there is nothing to see. undefined while it is loading; null if there is no NAV.
 */
function useUsual(vaults: Vault[], newestAt: string | null, wanted: boolean): string | null | undefined {
  const [at, setAt] = useState<string | null>(null)
  // The newest block changes, but a comparison that is open does not.
  useEffect(() => setAt((before) => before ?? newestAt), [newestAt])
  const vault = vaults.at(-1)
  const asks = wanted && vault !== undefined && at !== null
  const of = { path: { address: vault?.address ?? "" } }
  const newest = useExact(asks ? "/api/v1/vaults/{address}/nav" : null, { ...of, query: { pageSize: 1 } })
  const total = newest.answer?.meta.total ?? 0
  const oldest = useExact(asks && total > 0 ? "/api/v1/vaults/{address}/nav" : null, { ...of, query: { pageSize: 1, page: Math.min(total, 100_000) } })
  const first = oldest.answer?.data[0] ?? null
  const before = at === null ? 0 : Date.parse(at) - DAY
  const long = first !== null && Date.parse(first.timestamp) < before
  const day = useExact(asks && long ? "/api/v1/block" : null, { query: { time: new Date(before).toISOString() } })
  if (!asks || (newest.answer === null && newest.error === null)) return undefined
  if (total > 0 && oldest.answer === null && oldest.error === null) return undefined
  if (long && day.answer === null && day.error === null) return undefined
  return day.answer?.data.blockNumber ?? first?.blockNumber ?? null
}

/** The events after block a and up to block b: requested at b, newest first, down to the first one that is not after a. */
function Between({ a, b, vaults }: { a: string; b: string; vaults: Vault[] }) {
  const before = usePlace().query.get("before")
  const asked = useExact("/api/v1/events", { query: { asOfBlock: b, before, pageSize: 50 } })
  return (
    <>
      <h2>Events between</h2>
      <Shown asked={asked}>
        {(data, meta) => {
          const rows = data.filter((event) => BigInt(event.blockNumber) > BigInt(a))
          const all = rows.length < data.length || !meta.hasNextPage
          if (rows.length === 0 && before === null) return <Empty>No events after block {group(a)} and up to block {group(b)}.</Empty>
          return (
            <>
              <Events rows={rows} vaults={vaults} caption="Events between the blocks" />
              <Older meta={all ? { ...meta, next: null, hasNextPage: false } : meta} before={before} />
            </>
          )
        }}
      </Shown>
    </>
  )
}

interface Row {
  key: string
  vault: Vault
  what: string
  unit: Unit
  before: string | null
  after: string | null
}

function Worth({ a, b }: { a: string; b: string }) {
  const before = useExact("/api/v1/vaults", { query: { asOfBlock: a } })
  const after = useExact("/api/v1/vaults", { query: { asOfBlock: b } })
  const settledBefore = useExact("/api/v1/settlement/summary", { query: { asOfBlock: a } })
  const settledAfter = useExact("/api/v1/settlement/summary", { query: { asOfBlock: b } })
  // The columns are as wide as their content.
  const arrived = useArrived(before, after, settledBefore, settledAfter)
  if (!arrived) return <><h2>Vaults at both</h2><Waiting /></>
  return (
    <>
      <h2>Vaults at both</h2>
      <Shown asked={before}>
        {(old) => (
          <Shown asked={after}>
            {(now) => {
              const rows = now.flatMap((vault): Row[] => {
                const was = old.find((candidate) => candidate.address === vault.address)
                const waiting = (settled: typeof settledBefore) => settled.answer?.data.find((entry) => entry.vaultAddress === vault.address)
                const row = (what: string, unit: Unit, before: string | null | undefined, after: string | null | undefined) => ({ key: `${vault.address} ${what}`, vault, what, unit, before: before ?? null, after: after ?? null })
                return [
                  row("NAV per share", inNav, was?.navPerShare, vault.navPerShare),
                  row("Total assets", inAsset(vault.asset), was?.totalAssets, vault.totalAssets),
                  row("Shares", inShares(vault), was?.totalSupply, vault.totalSupply),
                  row("Deposits to sweep", inAsset(vault.asset), waiting(settledBefore)?.depositsToSweep.totalAmount, waiting(settledAfter)?.depositsToSweep.totalAmount),
                  row("Withdrawals to fund", inAsset(vault.asset), waiting(settledBefore)?.withdrawalsToFund.totalAmount, waiting(settledAfter)?.withdrawalsToFund.totalAmount),
                ]
              })
              return (
                <Table<Row>
                  caption="Vaults at both blocks"
                  rows={rows}
                  id={(row) => row.key}
                  mark={(row) => (row.what === "NAV per share" ? "begins" : undefined)}
                  columns={[
                    { title: "Vault", cell: (row) => (row.what === "NAV per share" ? <VaultLink address={row.vault.address} name={row.vault.name} /> : <span class="unseen">{row.vault.name}</span>) },
                    { title: "What", cell: (row) => row.what },
                    { title: `Block ${group(a)}`, number: true, cell: (row) => <Amount value={row.before} unit={row.unit} symbol /> },
                    { title: `Block ${group(b)}`, number: true, cell: (row) => <Amount value={row.after} unit={row.unit} symbol /> },
                    { title: "Change", number: true, cell: (row) => <Change row={row} /> },
                  ]}
                />
              )
            }}
          </Shown>
        )}
      </Shown>
    </>
  )
}

function Change({ row }: { row: Row }) {
  if (row.before === null || row.after === null) return <Amount value={null} unit={inNumber} />
  const by = difference(row.before, row.after)
  if (by === "0") return <span class="faint">none</span>
  return <span>{by.startsWith("-") ? "" : "+"}<Amount value={by} unit={row.unit} symbol /></span>
}
