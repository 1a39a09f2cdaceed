// The delivery log: what was sent, what the receiver responded, and the button for a replay.
import { useEffect, useState } from "preact/hooks"
import { ApiError } from "../api"
import { count, duration, group, shortHex } from "../format"
import { type Run, askPartner, pause, replay, replayAll, usePartner } from "../partner"
import { go, here, there, usePlace } from "../router"
import type { Attempt, Delivery } from "../types"
import { Time } from "./names"
import { useSending } from "./sending"
import { Empty, Failed, Shown } from "./state"
import { Pages, Table, pageOf } from "./table"

const states: Record<Delivery["state"], [name: string, kind: string]> = {
  pending: ["Delivering", "warn"],
  parked: ["Paused", "warn"],
  delivered: ["Delivered", "good"],
  failed: ["Retries exhausted", "bad"],
  no_endpoint: ["No URL", ""],
}

const types = ["deposit.referral", "withdrawal.referral", "webhook.test"] as const

export function DeliveryState({ state }: { state: Delivery["state"] }) {
  const [name, kind] = states[state]
  return <span class={`badge ${kind}`}>{name}</span>
}

/** Whether it still has to be delivered. */
export const underWay = (delivery: Pick<Delivery, "state">) => delivery.state === "pending" || delivery.state === "parked"

/** Polling interval of a delivery log, ms: 12 of the 120 requests per minute while a delivery is pending, otherwise 2. */
const every = (log: Delivery[]) => (log.some(underWay) ? 5_000 : 30_000)

const filters = ["state", "type", "tx", "from", "to"] as const

export function Deliveries({ sent }: { sent: number }) {
  const place = usePlace()
  const [again, setAgain] = useState(0)
  const value = (name: (typeof filters)[number]) => place.query.get(name) || null
  const state = (Object.keys(states) as Delivery["state"][]).find((one) => one === value("state")) ?? null
  const type = types.find((one) => one === value("type")) ?? null
  const query = { state, type, tx: value("tx"), from: value("from"), to: value("to") }
  const filtered = Object.values(query).some((given) => given !== null)
  const log = usePartner("/api/v1/partner/webhooks/deliveries", { query: { ...query, page: pageOf(place.query, "deliveries"), pageSize: 20 } }, `${sent}/${again}`, every)
  const look = () => setAgain((n) => n + 1)
  return (
    <>
      <form
        class="filters"
        role="search"
        aria-label="Filter the deliveries"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          const id = String(form.get("event") ?? "").trim()
          if (id !== "") return go(there(place, `/partner/delivery/${encodeURIComponent(id.toLowerCase())}`))
          go(here(place, { ...Object.fromEntries(filters.map((name) => [name, String(form.get(name) ?? "").trim()])), deliveries: null }))
        }}
        onChange={(event) => (event.target as HTMLElement).matches("select") && event.currentTarget.requestSubmit()}
      >
        <label>
          State
          <select name="state" value={state ?? ""}>
            <option value="">all</option>
            {Object.entries(states).map(([state, [name]]) => (
              <option key={state} value={state}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Type
          <select name="type" value={type ?? ""}>
            <option value="">all</option>
            {types.map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
        </label>
        <label>
          From
          <input name="from" type="date" defaultValue={query.from ?? ""} />
        </label>
        <label>
          To
          <input name="to" type="date" defaultValue={query.to ?? ""} />
        </label>
        <label>
          Transaction
          <input name="tx" defaultValue={query.tx ?? ""} placeholder="0x…" spellcheck={false} autocomplete="off" />
        </label>
        <label>
          Event id
          <input name="event" spellcheck={false} autocomplete="off" pattern="\s*[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\s*" title="32 hexadecimal digits in groups of 8, 4, 4, 4 and 12" />
        </label>
        <button class="button">Filter</button>
        {filtered && <a href={here(place, { ...Object.fromEntries(filters.map((name) => [name, null])), deliveries: null })}>Clear</a>}
      </form>
      <ReplayFailed again={`${sent}/${again}`} done={look} />
      <Shown asked={log}>
        {(data, meta) => (
          <>
            {meta.total === 0 ? (
              <Empty>{filtered ? "No deliveries match these filters." : "No deliveries yet. Send a test event, or wait for a deposit through you."}</Empty>
            ) : (
              <Table
                caption="Deliveries"
                rows={data}
                id={(delivery) => delivery.eventId}
                columns={[
                  { title: "State", cell: ({ state }) => <DeliveryState state={state} /> },
                  { title: "Event", cell: ({ eventId, sequence }) => <a href={there(place, `/partner/delivery/${eventId}`)} title={eventId}>{sequence === null ? shortHex(eventId) : `Number ${sequence}`}</a> },
                  { title: "Type", cell: ({ type }) => type },
                  { title: "Made, UTC", cell: ({ createdAt }) => <Time iso={createdAt} /> },
                  { title: "Ended, UTC", cell: ({ finishedAt, nextAttemptAt, correctedAt }) => <>{finishedAt === null && nextAttemptAt !== null && "next attempt "}<Time iso={finishedAt ?? nextAttemptAt} />{correctedAt !== undefined && <span class="badge warn after" title={`At ${correctedAt}, by a reorganisation: a replay sends the newest body`}>corrected</span>}</> },
                  { title: "Attempts", long: true, cell: (delivery) => <Attempts of={delivery} /> },
                  { title: "Replay", cell: (delivery) => !underWay(delivery) && <Replay id={delivery.eventId} done={look} /> },
                ]}
              />
            )}
            <Pages meta={meta} parameter="deliveries" what="event" />
          </>
        )}
      </Shown>
    </>
  )
}

export function Replay({ id, done }: { id: string; done: () => void }) {
  const { busy, error, send } = useSending<unknown>()
  return (
    <>
      <button type="button" class="button" disabled={busy} aria-label={`Replay ${id}`} onClick={() => send(replay(id), done)}>
        Replay
      </button>
      {error !== null && (
        <span class="refused" role="alert">
          {error.message}
          {error.retryAfter !== null && <> Try again in {duration(error.retryAfter)}.</>}
        </span>
      )}
    </>
  )
}

/** How many failed deliveries one page of the API has. */
const FAILED = 100

/** The ids of all failed deliveries, whichever are shown. */
async function allFailed(signal: AbortSignal): Promise<string[]> {
  const ids = new Set<string>()
  for (let page = 1; ; page++) {
    const { data, meta } = await askPartner("/api/v1/partner/webhooks/deliveries", { query: { state: "failed", page, pageSize: FAILED } }, signal)
    for (const { eventId } of data) ids.add(eventId)
    if (!meta.hasNextPage) return [...ids]
  }
}

/** Replays all failed deliveries, one after another. */
function ReplayFailed({ again, done }: { again: string; done: () => void }) {
  const failed = usePartner("/api/v1/partner/webhooks/deliveries", { query: { state: "failed", pageSize: 1 } }, again).answer?.meta.total ?? 0
  // all is 0 while the ids are read.
  const [running, setRunning] = useState<{ stop: AbortController; all: number } | null>(null)
  const [run, setRun] = useState<Run | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  useEffect(() => () => running?.stop.abort(), [running?.stop])
  const start = async () => {
    const stop = new AbortController()
    setError(null)
    setRun(null)
    setRunning({ stop, all: 0 })
    try {
      const ids = await allFailed(stop.signal)
      setRunning({ stop, all: ids.length })
      await replayAll(ids, replay, (seconds) => pause(seconds, stop.signal), stop.signal, setRun)
      done()
    } catch (error) {
      setRunning(null)
      if (stop.signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      setError(error)
    }
  }
  const going = running !== null && run?.ended !== true
  return (
    <>
      <p>
        {going ? (
          <button type="button" class="button" onClick={() => running?.stop.abort()}>
            Stop
          </button>
        ) : (
          <button type="button" class="button" disabled={failed === 0} onClick={() => void start()}>
            {failed === 0 ? "Nothing to replay" : failed === 1 ? "Replay the failed delivery" : `Replay all ${group(String(failed))} failed deliveries`}
          </button>
        )}{" "}
        <span class="faint">At most ten replays and tests a minute; leaving this view stops it.</span>
      </p>
      {error !== null && <Failed error={error} again={false} />}
      <div role="status">
        {run !== null && running !== null && (
          <div class={`note ${run.failures.length > 0 ? "warned" : run.ended && run.done === running.all ? "proven" : ""}`}>
            <p>
              <progress max={running.all} value={run.done + run.failures.length} aria-label="Replayed" /> {run.done} of {running.all} replayed
              {run.waits !== null && <>. {run.why} It goes on in {duration(run.waits)}.</>}
              {run.ended && run.done + run.failures.length < running.all && ". Stopped."}
            </p>
            {run.failures.length > 0 && (
              <ul>
                {run.failures.map(({ id, message }) => (
                  <li key={id}>
                    <code>{id}</code>: {message}
                  </li>
                ))}
              </ul>
            )}
          </div>
        )}
      </div>
    </>
  )
}

/** The attempts, each with its outcome. */
export function Attempts({ of, open = false }: { of: Delivery; open?: boolean }) {
  const last = of.attempts.at(-1)
  if (last === undefined) return <span class="faint">none yet</span>
  return (
    <details class="attempts" open={open}>
      <summary>
        {count(last.number, "attempt")}: <span class="brief">{outcome(last)}</span>
      </summary>
      <ol>
        {of.attempts.map((attempt) => (
          <li key={attempt.number} value={attempt.number}>
            <OneAttempt attempt={attempt} />
          </li>
        ))}
      </ol>
    </details>
  )
}

function OneAttempt({ attempt }: { attempt: Attempt }) {
  // Fields that a later version of the API adds are shown unchanged.
  const { number: _, url, startedAt, durationMs, status: _status, error: _error, ...more } = attempt
  return (
    <>
      {outcome(attempt)}, after {durationMs} ms, <Time iso={startedAt} />
      <br />
      <code>{url}</code>
      {Object.entries(more).map(([name, value]) => (
        <div key={name}>
          <span class="faint">{name}</span> <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>
        </div>
      ))}
    </>
  )
}

export function outcome({ status, error }: Pick<Attempt, "status" | "error">): string {
  return [status === null ? "no response" : `responded ${status}`, error].filter((part) => part !== null).join(", ")
}
