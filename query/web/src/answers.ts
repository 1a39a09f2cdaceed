// Answers as components use them. The status is requested every few seconds, and when it names a newer state of the
// log, everything on the screen is requested again: the browser sends the ETag, so an unchanged answer is 304.
// Answers about final blocks never change; those about other past blocks may change by a reorganisation, and are
// requested again, too.
import { useEffect, useRef, useState } from "preact/hooks"
import { ApiError, type Answer, type DataOf, type MetaOf, type Params, type Path, type PathWith, type Position, ask, url } from "./api"
import { AS_OF, asOf, usePlace } from "./router"
import type { Explorer, Status } from "./types"
import { type Watchers, useWatched } from "./watched"

/** Interval of requests for the status, ms. */
const EVERY = 3000
/** How many answers are cached for going back and forward. */
const KEPT = 200

const kept = new Map<string, Answer<unknown, unknown>>()

/** Caches an answer and returns it, or the cached one if that is of a later state: an instance may be behind another. */
export function keep(href: string, answer: Answer<unknown, unknown>): Answer<unknown, unknown> {
  const before = kept.get(href)
  if (before !== undefined && isLater(before.position, answer.position)) return before
  kept.delete(href)
  kept.set(href, answer)
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break
    kept.delete(oldest)
  }
  return answer
}

function isLater(a: Position, b: Position): boolean {
  return a.generation === b.generation && a.seq !== null && b.seq !== null && BigInt(a.seq) > BigInt(b.seq)
}

/** A request, and the state of the log at which it was sent. */
interface Asking<T, M> {
  state: string
  answer: Promise<Answer<T, M>>
}

const asking = new Map<string, Asking<unknown, unknown>>()

/** Requests and caches an answer; a concurrent request for the same waits for the same answer, which is of an earlier state. */
export function once<P extends Path>(href: string, state: string, path: P, params: Params<P>): Asking<DataOf<P>, MetaOf<P>> {
  let asked = asking.get(href)
  if (asked === undefined) {
    const answer = ask(path, params)
      .then((answer) => keep(href, answer))
      .finally(() => asking.delete(href))
    asked = { state, answer }
    asking.set(href, asked)
  }
  return asked as Asking<DataOf<P>, MetaOf<P>>
}

export interface StatusView {
  status: Status | null
  error: ApiError | null
}

let view: StatusView = { status: null, error: null }
let explorer: Explorer | null = null
const watchers: Watchers = new Set()

async function look() {
  try {
    view = { status: (await ask("/status", {})).data, error: null }
  } catch (error) {
    view = { status: view.status, error: error as ApiError }
  }
  const named = view.status?.explorer ?? null
  if (JSON.stringify(named) !== JSON.stringify(explorer)) explorer = named
  for (const watcher of watchers) watcher()
}

/** Polls the status while the page is open and visible. */
export async function watchStatus(): Promise<never> {
  for (;;) {
    if (document.visibilityState === "hidden") {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }))
      continue
    }
    await look()
    await new Promise((resolve) => setTimeout(resolve, EVERY))
  }
}

export const useStatus = (): StatusView => useWatched(watchers, () => view)

/** The external explorer of the newest status: the same object until it changes, so that rows of links are drawn only once. */
export const useExplorer = (): Explorer | null => useWatched(watchers, () => explorer)

export interface Asked<T, M> {
  /** The newest answer; while a newer one is requested, the previous one. */
  answer: Answer<T, M> | null
  error: ApiError | null
}

/** Requests an answer at the block in the address bar, and again whenever the log grew. path null: requests nothing. */
export function useAnswer<P extends PathWith<typeof AS_OF>>(path: P | null, params: Params<P>): Asked<DataOf<P>, MetaOf<P>> {
  const block = asOf(usePlace())
  return useExact(path, { ...params, query: { ...params.query, [AS_OF]: block } })
}

/** Whether a cached answer is still current: it is of the newest state, or about a final block. */
function holds(answer: Answer<unknown, unknown> | undefined, query: object | undefined, status: Status | null): boolean {
  if (!answer || !status || answer.position.generation !== String(status.generation)) return false
  if (answer.position.seq === String(status.seq)) return true
  const block = (query as { [AS_OF]?: unknown } | undefined)?.[AS_OF]
  return typeof block === "string" && status.finalBlock !== null && BigInt(block) <= BigInt(status.finalBlock)
}

/** Requests an answer at the block in the query. */
export function useExact<P extends Path>(path: P | null, params: Params<P>): Asked<DataOf<P>, MetaOf<P>> {
  type Kept = Answer<DataOf<P>, MetaOf<P>>
  const { status } = useStatus()
  const href = path === null ? null : url(path, params)
  const state = status === null ? "" : `${status.generation}/${status.seq}`
  const [asked, set] = useState<Asked<DataOf<P>, MetaOf<P>> & { href: string | null }>({ href: null, answer: null, error: null })
  const [again, setAgain] = useState(0)
  useEffect(() => {
    if (path === null || href === null) return
    if (holds(kept.get(href), params.query, status)) return set({ href, answer: kept.get(href) as Kept, error: null })
    // Most of what the API rejects as invalid stays invalid at the next block.
    if (asked.href === href && asked.error !== null && !asked.error.mayPass) return
    let left = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const repeat = () => setAgain((n) => n + 1)
    const sent = once(href, state, path, params)
    // The state has changed since the request was sent, so its answer is only shown until there is a newer one.
    const outdated = sent.state !== state
    sent.answer.then(
      (answer) => {
        if (left) return
        set({ href, answer, error: null })
        if (outdated) repeat()
      },
      (error: unknown) => {
        if (left) return
        if (!(error instanceof ApiError)) throw error
        set((before) => ({ href, answer: before.href === href && error.retryAfter !== null ? before.answer : null, error }))
        if (error.retryAfter !== null) timer = setTimeout(repeat, error.retryAfter * 1000)
        else if (outdated) repeat()
      },
    )
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [href, state, again])
  if (href !== null && asked.href === href) return asked
  return { answer: href === null ? null : ((kept.get(href) as Kept | undefined) ?? null), error: null }
}

/**
 * The previous response while a query at a new state is loading, so that nothing disappears meanwhile. A query about another
 * subject begins without a response.
 */
export function useSteady<T, M>(asked: Asked<T, M>, subject: string): Asked<T, M> {
  const last = useRef<{ subject: string; answer: Answer<T, M> | null }>({ subject, answer: null })
  if (last.current.subject !== subject) last.current = { subject, answer: null }
  if (asked.answer !== null) last.current.answer = asked.answer
  return asked.answer === null && asked.error === null ? { answer: last.current.answer, error: null } : asked
}
