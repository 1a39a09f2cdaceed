// Addresses, transactions, blocks and times in tables.
import { createContext } from "preact"
import { useContext, useEffect, useState } from "preact/hooks"
import { useExplorer } from "../answers"
import { type Kind, outside } from "../explorer"
import { ageSeconds, duration, group, shortHex, time } from "../format"
import { AS_OF, here, there, usePlace } from "../router"
import { Copy } from "./amount"

const kinds: Record<Kind, string> = { tx: "Transaction", address: "Address", block: "Block" }

/** A link to the same in the external explorer; nothing without one. */
export function Outside({ kind, value }: { kind: Kind; value: string }) {
  const href = outside(useExplorer(), kind, value)
  if (href === null) return null
  return (
    <a class="outside" href={href} target="_blank" rel="noopener noreferrer" aria-label={`${kinds[kind]} ${value} in an external explorer, in a new tab`} title="Open in an external explorer">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3L7.5 8.5" />
      </svg>
    </a>
  )
}

export function UserLink({ address }: { address: string }) {
  const place = usePlace()
  return (
    <span class="hex">
      <a href={there(place, `/user/${address}`)} title={address}>
        {shortHex(address)}
      </a>
      <Copy text={address} what={`address ${address}`} />
      <Outside kind="address" value={address} />
    </span>
  )
}

export function VaultLink({ address, name }: { address: string; name: string }) {
  return <a href={there(usePlace(), `/vault/${address}`)}>{name}</a>
}

/** A transaction, with a link to its page. */
export function TxLink({ hash }: { hash: string | null }) {
  const place = usePlace()
  if (hash === null) return <span class="faint">sampled</span>
  return (
    <span class="hex">
      <a href={there(place, `/tx/${hash}`)} title={hash}>
        {shortHex(hash)}
      </a>
      <Copy text={hash} what={`transaction ${hash}`} />
      <Outside kind="tx" value={hash} />
    </span>
  )
}

/** A hash or address without a link. */
export function Hex({ value, what }: { value: string; what: string }) {
  return (
    <span class="hex">
      <span title={value}>{shortHex(value)}</span>
      <Copy text={value} what={`${what} ${value}`} />
    </span>
  )
}

/** A block number, with a link to the same page at that block. */
export function BlockLink({ number }: { number: string }) {
  const place = usePlace()
  return (
    <span class="block-link">
      <a class="block" href={here(place, { [AS_OF]: number })} title={`This page as of block ${group(number)}`}>
        {group(number)}
      </a>
      <Outside kind="block" value={number} />
    </span>
  )
}

export function Time({ iso }: { iso: string | null }) {
  if (iso === null) return <span class="faint">&ndash;</span>
  return (
    <time dateTime={iso} title={`${iso}, UTC`}>
      {time(iso)}
    </time>
  )
}

/** The time of the page's block: null if that is the newest block, undefined while it is loading. */
export const BlockTime = createContext<string | null | undefined>(null)

/** How long ago a time was; on a page at a past block, how long before that block. */
export function Age({ iso, ago = true }: { iso: string | null; ago?: boolean }) {
  const now = useNow()
  const block = useContext(BlockTime)
  if (iso === null) return <span class="faint">never</span>
  if (block === undefined) return <span class="faint">&hellip;</span>
  const until = block === null ? now : Date.parse(block)
  return (
    <time dateTime={iso} title={`${iso}, UTC`}>
      {duration(ageSeconds(iso, until))}
      {ago && (block === null ? " ago" : " before")}
    </time>
  )
}

/** The clock, updated every second. */
function useNow(): number {
  const [now, set] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
