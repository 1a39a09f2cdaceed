// Addresses, transactions, blocks and times as they stand in tables.
import { createContext } from "preact"
import { useContext, useEffect, useState } from "preact/hooks"
import { ageSeconds, duration, group, shortHex, time } from "../format"
import { AS_OF, here, there, usePlace } from "../router"
import { Copy } from "./amount"

export function UserLink({ address }: { address: string }) {
  const place = usePlace()
  return (
    <span class="hex">
      <a href={there(place, `/user/${address}`)} title={address}>
        {shortHex(address)}
      </a>
      <Copy text={address} what={`address ${address}`} />
    </span>
  )
}

export function VaultLink({ address, name }: { address: string; name: string }) {
  return <a href={there(usePlace(), `/vault/${address}`)}>{name}</a>
}

/** A transaction, which leads to its page. */
export function TxLink({ hash }: { hash: string }) {
  const place = usePlace()
  return (
    <span class="hex">
      <a href={there(place, `/tx/${hash}`)} title={hash}>
        {shortHex(hash)}
      </a>
      <Copy text={hash} what={`transaction ${hash}`} />
    </span>
  )
}

/** A hash or address that leads nowhere. */
export function Hex({ value, what }: { value: string; what: string }) {
  return (
    <span class="hex">
      <span title={value}>{shortHex(value)}</span>
      <Copy text={value} what={`${what} ${value}`} />
    </span>
  )
}

/** A block number, which leads to the same page as of that block. */
export function BlockLink({ number }: { number: string }) {
  const place = usePlace()
  return (
    <a class="block" href={here(place, { [AS_OF]: number })} title={`This page as of block ${group(number)}`}>
      {group(number)}
    </a>
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

/** The time of the block that the page is as of: null where the page is as of the newest block, undefined while it is asked for. */
export const BlockTime = createContext<string | null | undefined>(null)

/** How long ago a time was; on a page as of a past block, how long before that block. */
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

/** The clock, once a second. */
export function useNow(): number {
  const [now, set] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
