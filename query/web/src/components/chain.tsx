// The strip below the navigation: how far navlog is, always in sight, and the time machine.
import { useEffect, useRef, useState } from "preact/hooks"
import { useStatus } from "../answers"
import { duration, group } from "../format"
import { AS_OF, asOf, blockNumber, go, here, there, usePlace } from "../router"
import type { Status } from "../types"
import { Age } from "./names"

export function ChainStrip({ first }: { first: string | null }) {
  const { status, error } = useStatus()
  return (
    <section class="chain" aria-label="Chain">
      {error !== null && (
        <p class="note failed" role="alert">
          {error.message} What is shown is what was seen last.
        </p>
      )}
      {status === null ? <p class="facts faint">Reading the state of the index&hellip;</p> : <Facts status={status} />}
      {status !== null && status.indexedBlock !== null && first !== null && <TimeMachine first={first} newest={status.indexedBlock} final={status.finalBlock} />}
    </section>
  )
}

const states: Record<Status["chainState"], string> = {
  following: "Following the chain",
  backfilling: "Catching up with the chain",
  frozen: "Frozen",
  unknown: "Ingest says nothing",
}

function Facts({ status }: { status: Status }) {
  const fact = (name: string, value: string | number | null, title: string) => (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{value === null ? "–" : group(String(value))}</dd>
    </div>
  )
  return (
    <>
      <dl class="facts">
        <div class={`state ${status.chainState}`}>
          <dt class="unseen">state</dt>
          <dd>{states[status.chainState]}</dd>
        </div>
        {fact("indexed", status.indexedBlock, "The newest block that the answers are made of")}
        {fact("head", status.headBlock, "The newest block of the chain that ingest has seen")}
        {fact("final", status.finalBlock, "No reorganisation changes blocks up to here")}
        {fact("proven to", status.provenTo, "Up to here the logs of every vault were compared with the headers of their blocks")}
        <div title="How far the index is behind the chain">
          <dt>lag</dt>
          <dd>{status.lagBlocks === null ? "–" : `${group(String(status.lagBlocks))} blocks${status.lagSeconds ? `, ${duration(status.lagSeconds)}` : ""}`}</dd>
        </div>
        {fact("generation", status.generation, "The generation of read models that answers")}
        <div title="Time of the newest indexed block">
          <dt>block time</dt>
          <dd>{status.indexedAt === null ? "–" : <Age iso={status.indexedAt} />}</dd>
        </div>
      </dl>
      {status.frozenReason !== null && <p class="note failed" role="alert">Nothing is appended until an operator acts: {status.frozenReason}</p>}
      {status.firstSync !== null && (
        <p class="note" role="status">
          The first read model is being built: {group(String(status.firstSync.recordsLeft))} records of the log are left
          {status.firstSync.etaSeconds !== null && <>, about {duration(status.firstSync.etaSeconds)}</>}. Vaults and NAVs are shown as far as they are there.
        </p>
      )}
    </>
  )
}

/** ms without a movement of the slider after which the page goes to its block. */
const SETTLED = 200

function TimeMachine({ first, newest, final }: { first: string; newest: string; final: string | null }) {
  const place = usePlace()
  const chosen = asOf(place)
  // While the slider is drawn its block is ahead of the address bar's.
  const [drawn, draw] = useState<string | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const shown = drawn ?? chosen ?? newest
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => draw(null), [chosen])

  const to = (block: string) => here(place, { [AS_OF]: BigInt(block) >= BigInt(newest) ? null : block })
  const move = (block: string) => {
    draw(block)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      draw(null)
      go(to(block))
    }, SETTLED)
  }
  const step = (by: bigint) => {
    const next = BigInt(shown) + by
    return next < BigInt(first) ? first : String(next)
  }
  return (
    <div class={`machine ${chosen === null ? "" : "past"}`}>
      <label for="machine">As of block</label>
      <form
        class="block"
        onSubmit={(event) => {
          event.preventDefault()
          const text = String(new FormData(event.currentTarget).get("block")).replace(/[,\s]/g, "")
          const block = blockNumber(text)
          if (block !== null) go(to(block))
        }}
      >
        <input name="block" aria-label="Block number" inputMode="numeric" size={Math.max(7, group(newest).length)} value={group(shown)} key={shown} autocomplete="off" />
      </form>
      <a class="step" href={to(step(-1n))} aria-label="One block earlier">
        &minus;1
      </a>
      <span class="rail">
        <input
          id="machine"
          type="range"
          min={first}
          max={newest}
          step={1}
          value={shown}
          aria-valuetext={`block ${group(shown)}${shown === newest ? ", the newest" : ""}`}
          onInput={(event) => move(event.currentTarget.value)}
        />
      </span>
      <a class="step" href={to(step(1n))} aria-label="One block later">
        +1
      </a>
      {chosen === null ? (
        <span class="live">newest</span>
      ) : (
        <>
          <a class="live" href={here(place, { [AS_OF]: null })}>
            Back to the newest
          </a>
          <span class="faint">{final !== null && BigInt(chosen) <= BigInt(final) ? "final" : "may still be reorganised"}</span>
        </>
      )}
      <a href={there(place, "/compare", { [AS_OF]: null, a: chosen ?? first, b: newest })}>Compare</a>
    </div>
  )
}
