// The delivery log: what was sent, what the other side answered, and sending it again.
import { useEffect, useState } from "preact/hooks"
import { ApiError } from "../api"
import { count, duration } from "../format"
import { type Run, pause, replay, replayAll, usePartner } from "../partner"
import { go, here, usePlace } from "../router"
import type { Attempt, Delivery } from "../types"
import { Hex, Time } from "./names"
import { Empty, Shown } from "./state"
import { Pages, Table, pageOf } from "./table"

const states: Record<Delivery["state"], [name: string, kind: string]> = {
  pending: ["pending", "warn"],
  parked: ["parked", "warn"],
  delivered: ["delivered", "good"],
  failed: ["failed", "bad"],
  no_endpoint: ["had no URL", ""],
}

export function DeliveryState({ state }: { state: Delivery["state"] }) {
  const [name, kind] = states[state]
  return <span class={`badge ${kind}`}>{name}</span>
}

/** Whether somebody still works on it. */
export const underWay = (delivery: Delivery) => delivery.state === "pending" || delivery.state === "parked"

/** Time between two looks at a log, ms: while something is under way 12 of the 120 requests a minute, and otherwise 2. */
const every = (log: Delivery[]) => (log.some(underWay) ? 5_000 : 30_000)

export function Deliveries({ sent }: { sent: number }) {
  const place = usePlace()
  const [again, setAgain] = useState(0)
  const log = usePartner("/api/v1/partner/webhooks/deliveries", { query: { page: pageOf(place.query, "deliveries"), pageSize: 20 } }, `${sent}/${again}`, every)
  const look = () => setAgain((n) => n + 1)
  const rows = log.answer?.data ?? []
  const state = place.query.get("state") ?? ""
  return (
    <>
      <div class="filters">
        <label>
          Of this page, show
          <select value={state} onChange={(event) => go(here(place, { state: event.currentTarget.value }))}>
            <option value="">all states</option>
            {Object.entries(states).map(([state, [name]]) => (
              <option key={state} value={state}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ReplayFailed rows={rows} done={look} />
      <Shown asked={log}>
        {(data, meta) => {
          const shown = data.filter((delivery) => state === "" || delivery.state === state)
          return (
            <>
              {meta.total === 0 ? (
                <Empty>Nothing was to be sent yet. Send a test event, or wait for a deposit through you.</Empty>
              ) : shown.length === 0 ? (
                <Empty>None of the {count(data.length, "delivery", "deliveries")} of this page is in this state.</Empty>
              ) : (
                <Table
                  caption="Deliveries"
                  rows={shown}
                  id={(delivery) => delivery.eventId}
                  columns={[
                    { title: "Number", number: true, cell: ({ sequence }) => sequence ?? <span class="faint">&ndash;</span> },
                    { title: "State", cell: ({ state }) => <DeliveryState state={state} /> },
                    { title: "Send again", cell: (delivery) => !underWay(delivery) && <Replay id={delivery.eventId} done={look} /> },
                    { title: "Type", cell: ({ type }) => type },
                    { title: "Attempts", cell: (delivery) => <Attempts of={delivery} /> },
                    { title: "Made, UTC", cell: ({ createdAt }) => <Time iso={createdAt} /> },
                    { title: "Ended, UTC", cell: ({ finishedAt, nextAttemptAt, correctedAt }) => <>{finishedAt === null && nextAttemptAt !== null && "next attempt "}<Time iso={finishedAt ?? nextAttemptAt} />{correctedAt !== undefined && <span class="badge warn after" title={`At ${correctedAt}, by a reorganisation: a replay sends the newest body`}>corrected</span>}</> },
                    { title: "Event", cell: ({ eventId }) => <Hex value={eventId} what="event" /> },
                  ]}
                />
              )}
              <Pages meta={meta} parameter="deliveries" what="event" />
            </>
          )
        }}
      </Shown>
    </>
  )
}

function Replay({ id, done }: { id: string; done: () => void }) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const send = () => {
    setBusy(true)
    setError(null)
    replay(id)
      .then(done, (error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        setError(error)
      })
      .finally(() => setBusy(false))
  }
  return (
    <>
      <button type="button" class="button" disabled={busy} aria-label={`Replay ${id}`} onClick={send}>
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

/** The failed events of the page that is shown, one after the other. */
function ReplayFailed({ rows, done }: { rows: Delivery[]; done: () => void }) {
  const failed = rows.filter((delivery) => delivery.state === "failed").map((delivery) => delivery.eventId)
  const [running, setRunning] = useState<{ stop: AbortController; all: number } | null>(null)
  const [run, setRun] = useState<Run | null>(null)
  useEffect(() => () => running?.stop.abort(), [running])
  const start = () => {
    const stop = new AbortController()
    setRunning({ stop, all: failed.length })
    void replayAll(failed, replay, (seconds) => pause(seconds, stop.signal), stop.signal, setRun).then(done)
  }
  const going = run !== null && !run.ended
  return (
    <>
      <p>
        {going ? (
          <button type="button" class="button" onClick={() => running?.stop.abort()}>
            Stop
          </button>
        ) : (
          <button type="button" class="button" disabled={failed.length === 0} onClick={start}>
            Replay the {failed.length === 0 ? "" : `${failed.length} `}failed of this page
          </button>
        )}{" "}
        <span class="faint">At most ten replays and tests a minute; leaving this view stops it.</span>
      </p>
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

/** What was tried, each with what came of it. */
export function Attempts({ of, open = false }: { of: Delivery; open?: boolean }) {
  const last = of.attempts.at(-1)
  if (last === undefined) return <span class="faint">none yet</span>
  return (
    <details class="attempts" open={open}>
      <summary>
        {count(last.number, "attempt")}: {outcome(last)}
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
  // What a later version says besides is shown as it says it: the API adds fields.
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

function outcome({ status, error }: Attempt): string {
  return [status === null ? "no answer" : `answered ${status}`, error].filter((part) => part !== null).join(", ")
}
