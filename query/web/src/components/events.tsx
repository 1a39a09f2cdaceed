// Decoded logs as table rows. A log that a reorganisation retracted stays in the list, and is marked as retracted.
import { keyOf } from "../follow"
import { group } from "../format"
import { here, usePlace } from "../router"
import type { ChainEvent, CursorMeta, Vault } from "../types"
import { Amount, inNav } from "./amount"
import { kindName } from "./kinds"
import { amountIn, sharesIn } from "./lists"
import { BlockLink, Time, TxLink, UserLink, VaultLink } from "./names"
import { Table } from "./table"

interface Props {
  rows: ChainEvent[]
  vaults: Vault[]
  caption: string
}

export function Events({ rows, vaults, caption }: Props) {
  return (
    <Table<ChainEvent>
      caption={caption}
      rows={rows}
      id={keyOf}
      mark={(event) => (event.state === "live" ? undefined : "retracted")}
      columns={[
        { title: "Block", number: true, cell: (event) => <BlockLink number={event.blockNumber} /> },
        { title: "Time, UTC", cell: (event) => <Time iso={event.timestamp} /> },
        { title: "Event", cell: (event) => <>{kindName(event.kind)}<State event={event} /></> },
        { title: "Vault", cell: (event) => <VaultLink address={event.vaultAddress} name={event.vaultName} /> },
        { title: "User", cell: (event) => (event.userAddress === null ? <span class="faint">&ndash;</span> : <UserLink address={event.userAddress} />) },
        { title: "Assets", number: true, cell: (event) => amountIn(vaults, event.vaultAddress, event.assets ?? event.totalAssets) },
        { title: "Shares", number: true, cell: (event) => sharesIn(vaults, event.vaultAddress, event.shares ?? event.totalSupply) },
        { title: "NAV", number: true, cell: (event) => <Amount value={event.navPerShare} unit={inNav} /> },
        { title: "Of", cell: (event) => subject(event) },
        { title: "Transaction", cell: (event) => <TxLink hash={event.txHash} /> },
        { title: "Seq", number: true, cell: (event) => group(event.seq) },
      ]}
    />
  )
}

function State({ event }: { event: ChainEvent }) {
  if (event.state === "live") return null
  if (event.state === "quarantined") return <span class="badge warn after" title="It could not be decoded and is not counted">quarantined</span>
  return (
    <span class="badge bad after" title={`A reorganisation replaced its block: seq ${event.retractedBySeq} retracts it`}>
      reorganised away
    </span>
  )
}

/** The deposits or requests that an event is about. */
function subject(event: ChainEvent) {
  if (event.requestIndex !== null) return `request ${event.requestIndex}`
  if (event.depositId !== null) return `deposit ${event.depositId}`
  if (event.fromId !== null && event.toId !== null) return `${event.fromId} to ${event.toId}`
  return <span class="faint">&ndash;</span>
}

/** Links to older entries of a list without a total; before is the parameter of the cursor in the address bar. */
export function Older({ meta, before }: { meta: CursorMeta; before: string | null }) {
  const place = usePlace()
  if (before === null && !meta.hasNextPage) return null
  return (
    <nav class="pages" aria-label="Pages of events">
      {before !== null && <a href={here(place, { before: null })}>Newest</a>}
      {meta.hasNextPage && <a href={here(place, { before: meta.next })}>Older</a>}
    </nav>
  )
}
