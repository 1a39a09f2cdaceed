// The strip below the navigation: how far navlog is, always in sight, and the time machine.
import { useExact, useStatus } from "../answers"
import { ageSeconds, count, duration, group } from "../format"
import { AS_OF, asOf, here, there, usePlace } from "../router"
import type { Status } from "../types"
import { BlockPicker, type Mark } from "./blocks"
import { useNow } from "./names"

export function ChainStrip({ first }: { first: string | null }) {
  const { status, error } = useStatus()
  const place = usePlace()
  return (
    <section class="chain" aria-label="Chain">
      {error !== null && (
        <p class="note failed" role="alert">
          {error.message} What is shown is what was seen last.
        </p>
      )}
      {status === null ? <p class="facts faint">Reading the state of the index&hellip;</p> : <Facts status={status} />}
      {status !== null && status.indexedBlock !== null && first !== null && place.path !== "/compare" && <TimeMachine first={first} newest={status.indexedBlock} final={status.finalBlock} />}
    </section>
  )
}

const states: Record<Status["chainState"], string> = {
  following: "Following the chain",
  backfilling: "Catching up with the chain",
  frozen: "Frozen",
  unknown: "A program does not report",
  stalled: "The read model does not advance",
}

function Facts({ status }: { status: Status }) {
  const now = useNow()
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
          <dd>{status.lagBlocks === null ? "–" : `${count(status.lagBlocks, "block")}${status.lagSeconds ? `, ${duration(status.lagSeconds)}` : ""}`}</dd>
        </div>
        {fact("generation", status.generation, "The generation of read models that answers")}
        <div title="Time of the newest indexed block">
          <dt>block time</dt>
          <dd>{status.indexedAt === null ? "–" : <time dateTime={status.indexedAt} title={`${status.indexedAt}, UTC`}>{duration(ageSeconds(status.indexedAt, now))} ago</time>}</dd>
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

/** Into how many sections a slider divides the chain at most, for its marks. */
const SECTIONS = 250

/** The reorganisations between two blocks, for a slider. How long a section is doubles when the chain does, so that one question stays the same for long. */
export function useReorganisations(first: string | null, newest: string | null): Mark[] {
  let width = 1n
  if (first !== null && newest !== null) while (width * BigInt(SECTIONS) < BigInt(newest) - BigInt(first)) width *= 2n
  const asked = useExact(first === null || newest === null ? null : "/api/v1/reorganisations", { query: { width: String(width) } })
  return (asked.answer?.data ?? []).map(({ fromBlock, toBlock, count: n, logs }) => ({
    block: fromBlock,
    title: `${count(n, "reorganisation")} ${fromBlock === toBlock ? `of block ${group(fromBlock)}` : `of blocks ${group(fromBlock)} to ${group(toBlock)}`}, ${logs === 0 ? "without a log" : `${count(logs, "log")} taken back`}`,
  }))
}

function TimeMachine({ first, newest, final }: { first: string; newest: string; final: string | null }) {
  const place = usePlace()
  const chosen = asOf(place)
  const marks = useReorganisations(first, newest)
  return (
    <div class={`machine ${chosen === null ? "" : "past"}`}>
      <BlockPicker id="machine" label="As of block" first={first} newest={newest} block={chosen ?? newest} to={(block) => here(place, { [AS_OF]: BigInt(block) >= BigInt(newest) ? null : block })} marks={marks} />
      {chosen === null ? (
        <span class="live">newest</span>
      ) : (
        <>
          <a href={here(place, { [AS_OF]: null })}>Back to the newest</a>
          <span>{final !== null && BigInt(chosen) <= BigInt(final) ? "final" : "may still be reorganised"}</span>
        </>
      )}
      <a href={there(place, "/compare", { [AS_OF]: null, a: chosen ?? first, b: newest })}>Compare</a>
    </div>
  )
}
