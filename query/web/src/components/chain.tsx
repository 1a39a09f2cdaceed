// The time machine, and how far navlog is, as a chip that links to the status page.
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { ask, ApiError } from "../api"
import { useExact, useStatus } from "../answers"
import { count, duration, group } from "../format"
import { AS_OF, asOf, go, here, there, usePlace } from "../router"
import type { Status, Vault } from "../types"
import { BlockPicker, type Mark } from "./blocks"

/** Text and style of the chip for each state. */
const chips: Record<Status["chainState"], [text: string, kind: string]> = {
  following: ["Live", "good"],
  backfilling: ["Catching up", "warn"],
  frozen: ["Frozen", "bad"],
  unknown: ["Not reporting", "bad"],
  stalled: ["Delayed", "bad"],
}

export function Chip() {
  const { status, error } = useStatus()
  const [text, kind] = error !== null ? [error.status === 0 ? "Offline" : "No status", "bad"] : status === null ? ["Connecting", ""] : chips[status.chainState]
  return (
    <a class={`chip ${kind}`} href={there(usePlace(), "/status")} title="Progress of the index, and state of its programs">
      {text}
      {status !== null && status.indexedBlock !== null && <>, block {group(status.indexedBlock)}</>}
    </a>
  )
}

/** Important notices, shown on every page. */
export function Notices() {
  const { status, error } = useStatus()
  return (
    <>
      {error !== null && (
        <p class="note failed" role="alert">
          {error.message}
          {status !== null && " The page shows what it loaded last."}
        </p>
      )}
      {status !== null && status.frozenReason !== null && (
        <p class="note failed" role="alert">
          No new blocks are added until an operator acts. The <a href="/status">status page</a> has the reason.
        </p>
      )}
      {status !== null && status.firstSync !== null && (
        <p class="note" role="status">
          The first index is being built: {group(String(status.firstSync.recordsLeft))} records are left
          {status.firstSync.etaSeconds !== null && <>, about {duration(status.firstSync.etaSeconds)}</>}. Vaults and NAVs appear as they are read.
        </p>
      )}
    </>
  )
}

/** Maximum number of sections of a slider, for its marks. */
const SECTIONS = 250

/**
 * The reorganisations between two blocks, for a slider. The length of a section doubles when the chain does, so that the
 * request stays the same for a long time.
 */
export function useReorganisations(first: string | null, newest: string | null): Mark[] {
  let width = 1n
  if (first !== null && newest !== null) while (width * BigInt(SECTIONS) < BigInt(newest) - BigInt(first)) width *= 2n
  const asked = useExact(first === null || newest === null ? null : "/api/v1/reorganisations", { query: { width: String(width) } })
  return (asked.answer?.data ?? []).map(({ fromBlock, toBlock, count: n, logs }) => ({
    block: fromBlock,
    title: `${count(n, "reorganisation")} ${fromBlock === toBlock ? `of block ${group(fromBlock)}` : `of blocks ${group(fromBlock)} to ${group(toBlock)}`}, ${logs === 0 ? "without a log" : `${count(logs, "log")} retracted`}`,
  }))
}

/** The first block of the time machine: that of the oldest vault. */
export function firstBlock(vaults: Vault[]): string | null {
  return vaults.reduce<string | null>((first, vault) => (first === null || BigInt(vault.startBlock) < BigInt(first) ? vault.startBlock : first), null)
}

export function TimeMachine({ first, blockTime }: { first: string | null; blockTime: string | null | undefined }) {
  const place = usePlace()
  const { status } = useStatus()
  const chosen = asOf(place)
  const newest = status?.indexedBlock ?? null
  const marks = useReorganisations(first, newest)
  if (first === null || newest === null) return <section class="chain" aria-label="Time machine"><div class="machine" /></section>
  const final = status?.finalBlock ?? null
  return (
    <section class="chain" aria-label="Time machine">
      <div class={`machine ${chosen === null ? "" : "past"}`}>
        <BlockPicker id="machine" label="As of block" first={first} newest={newest} block={chosen ?? newest} to={(block) => here(place, { [AS_OF]: BigInt(block) >= BigInt(newest) ? null : block })} marks={marks} />
        <AtTime shown={blockTime ?? null} newest={newest} />
        {chosen === null ? (
          <span class="live">live</span>
        ) : (
          <>
            <a class="button" href={here(place, { [AS_OF]: null })}>Back to live</a>
            <span title={final !== null && BigInt(chosen) <= BigInt(final) ? "No reorganisation changes this block" : "A reorganisation may still change this block"}>{final !== null && BigInt(chosen) <= BigInt(final) ? "final" : "not final yet"}</span>
          </>
        )}
        <a class="to-compare" href={there(place, "/compare", { [AS_OF]: null, a: chosen, b: chosen === null ? null : newest })}>Compare</a>
      </div>
    </section>
  )
}

/**
 * Selects the block at a time, with Enter or when the field loses the focus: a time that is only partly typed is another
 * time.
 */
function AtTime({ shown, newest }: { shown: string | null; newest: string }) {
  const place = usePlace()
  const [typed, type] = useState<string | null>(null)
  const [error, setError] = useState<string | null>(null)
  const asking = useRef<AbortController | null>(null)
  // The page may show something else when the answer arrives.
  const latest = useRef(place)
  latest.current = place
  // A visitor who goes on, to another page or block, stays there. It runs at once, and not after the next frame: on a
  // busy machine the visitor types again before that.
  useLayoutEffect(
    () => () => {
      asking.current?.abort()
      type(null)
      setError(null)
    },
    [place.path, asOf(place)],
  )
  const choose = async () => {
    asking.current?.abort()
    if (typed === null || typed === "") return type(null)
    const { signal } = (asking.current = new AbortController())
    setError(null)
    try {
      const { data } = await ask("/api/v1/block", { query: { time: `${typed.length > 16 ? typed : `${typed}:59`}Z` } }, { signal })
      if (signal.aborted) return
      type(null)
      go(here(latest.current, { [AS_OF]: BigInt(data.blockNumber) >= BigInt(newest) ? null : data.blockNumber }))
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      setError(error.message)
    }
  }
  return (
    <>
      <label class="at">
        or at, UTC{" "}
        <input
          type="datetime-local"
          name="time"
          step={1}
          value={typed ?? shown?.slice(0, 19) ?? ""}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && void choose()}
          // If the window loses the focus, the field keeps it for when the visitor returns.
          onBlur={(event) => document.activeElement !== event.currentTarget && void choose()}
        />
      </label>
      {error !== null && <span class="bad" role="alert">{error}</span>}
    </>
  )
}
