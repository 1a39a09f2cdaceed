// `/compare`: two pinned blocks, what each vault was worth at either, and what lies between.
import { useExact, useStatus } from "../answers"
import { Amount, type Unit, inAsset, inNav, inNumber, inShares } from "../components/amount"
import { BlockPicker } from "../components/blocks"
import { useReorganisations } from "../components/chain"
import { Events, Older } from "../components/events"
import { VaultLink } from "../components/names"
import { Empty, Shown } from "../components/state"
import { Table } from "../components/table"
import { difference, group } from "../format"
import { blockNumber, here, usePlace } from "../router"
import type { Vault } from "../types"

export function ComparePage() {
  const place = usePlace()
  const { status } = useStatus()
  const vaults = useExact("/api/v1/vaults", {})
  const first = vaults.answer?.data.reduce<string | null>((lowest, vault) => (lowest === null || BigInt(vault.startBlock) < BigInt(lowest) ? vault.startBlock : lowest), null) ?? null
  const newest = status?.indexedBlock ?? null
  const marks = useReorganisations(first, newest)
  if (first === null || newest === null) return <><h1>Compare two blocks</h1><Shown asked={vaults}>{() => <Empty>There is nothing to compare before the first vault is indexed.</Empty>}</Shown></>
  const a = blockNumber(place.query.get("a")) ?? first
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
        <p class="note warned">Block {group(a)} comes after block {group(b)}. <a href={here(place, { a: b, b: a, before: null })}>Exchange them</a></p>
      ) : (
        <>
          <Worth a={a} b={b} />
          <Between a={a} b={b} vaults={vaults.answer?.data ?? []} />
        </>
      )}
    </>
  )
}

/** The events after block a and up to block b: as of b, newest first, until one is not after a. */
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
          if (rows.length === 0 && before === null) return <Empty>Nothing happened after block {group(a)} and up to block {group(b)}.</Empty>
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
  return <>{by.startsWith("-") ? "" : "+"}<Amount value={by} unit={row.unit} symbol /></>
}
