// Placeholders for an answer: that it is loading, why there is none, or what an empty one means.
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"
import type { ApiError } from "../api"
import type { Asked } from "../answers"
import { count, duration } from "../format"

/** Shows the answer once there is one, and until then the reason why there is none. */
export function Shown<T, M>({ asked, children }: { asked: Asked<T, M>; children: (data: T, meta: M) => ComponentChildren }) {
  const { answer, error } = asked
  if (answer === null) return error === null ? <Waiting /> : <Failed error={error} />
  return (
    <>
      {error !== null && <Failed error={error} />}
      {children(answer.data, answer.meta)}
    </>
  )
}

/** A placeholder for a response, as large as most are, so that the content below it does not move. */
export function Waiting() {
  return (
    <div class="note waiting" role="status">
      <span class="unseen">Loading</span>
      <i />
      <i />
      <i />
    </div>
  )
}

/** Whether every request of a page has had its first response: until then the page shows one skeleton, and nothing moves. */
export function useArrived(...asked: Asked<unknown, unknown>[]): boolean {
  const arrived = useRef(false)
  if (asked.every(({ answer, error }) => answer !== null || error !== null)) arrived.current = true
  return arrived.current
}

/** again: the request is retried automatically, unlike one that a button started. */
export function Failed({ error, again = true }: { error: ApiError; again?: boolean }) {
  const { progress, faults } = error
  return (
    <div class={`note ${error.status === 503 || error.status === 429 ? "warned" : "failed"}`} role="alert">
      <p>
        {error.message}
        {progress === null && error.retryAfter !== null && error.status !== 0 && (again ? <> The page retries in {duration(error.retryAfter)}.</> : <> Try again in {duration(error.retryAfter)}.</>)}
      </p>
      {progress !== null && (
        <p>
          Generation {progress.generation} {progress.phase === "facts" ? "reads the log" : "has read the log and builds its lists"}:{" "}
          {count(progress.recordsLeft, "record")} left
          {progress.etaSeconds !== null && <>, about {duration(progress.etaSeconds)}</>}.{again && " This page then loads by itself."}
        </p>
      )}
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => (
            <li key={fault.field}>
              <code>{fault.field}</code> {fault.reason}
            </li>
          ))}
        </ul>
      )}
      {error.requestId !== null && <p class="faint">Request {error.requestId}</p>}
    </div>
  )
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="note empty">{children}</p>
}
