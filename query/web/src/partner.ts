// What asks the partner routes. The API key is a variable of this module: not in the address bar, not in the responses that
// are kept, and gone when the page is left. Only on request the tab keeps it, until it is closed or the key is forgotten.
import { useEffect, useState } from "preact/hooks"
import { ApiError, type Answer, type DataOf, type MetaOf, type Params, type Path, answered, ask, client, said, url } from "./api"
import type { Asked } from "./answers"

/** Where a key is kept that is to last as long as the tab. */
const KEPT = "navlog-key"

let key: string | null = kept()
/** Whose key it is, once the API has said so. */
let name: string | null = null
/** Counts the keys: a response for an earlier one is not shown under a later one. */
let nth = key === null ? 0 : 1
/** Why there is no key any more, where the API refused it. */
let refused: ApiError | null = null
const watchers = new Set<() => void>()

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEPT)
  } catch {
    return null // The browser refuses storage.
  }
}

function keep(text: string | null) {
  try {
    if (text === null) sessionStorage.removeItem(KEPT)
    else sessionStorage.setItem(KEPT, text)
  } catch {
    // The browser refuses storage: the key lasts as long as the page.
  }
}

function change(next: string | null, whose: string | null, why: ApiError | null) {
  key = next
  name = whose
  nth++
  refused = why
  if (next === null) keep(null)
  for (const watcher of watchers) watcher()
}

/** What makes a request with a key that is not in use yet. */
export type Trial = { key: string }

/** Takes a key once the API knows it: whose says whose it is, or throws. With inTab it lasts until the tab is closed. */
export async function giveKey(text: string, inTab: boolean, whose: (trial: Trial) => Promise<string>): Promise<void> {
  const found = await whose({ key: text })
  change(text, found, null)
  if (inTab) keep(text)
}

export function forgetTheKey() {
  change(null, null, null)
}

export interface KeyView {
  /** 0 without a key; with another key another number. */
  key: number
  name: string | null
  refused: ApiError | null
}

const seen = (): KeyView => ({ key: key === null ? 0 : nth, name, refused })

export function useKey(): KeyView {
  const [view, set] = useState(seen)
  useEffect(() => {
    const watcher = () => set(seen())
    watchers.add(watcher)
    watcher()
    return () => void watchers.delete(watcher)
  }, [])
  return view
}

/** An error of a partner route as a sentence that says what to do. */
export function told(error: ApiError): ApiError {
  const message = sentence(error)
  return message === null ? error : new ApiError(message, error.status, error.code, error.details, error.requestId, error.retryAfter)
}

function sentence({ status, code, details }: ApiError): string | null {
  switch (status) {
    case 401:
      return "This key is not known, or was revoked: look whether all of it was typed, or ask the operator for another one."
    case 403:
      return "The key is good, but its partner is disabled: only the operator can enable it again."
    case 429:
      return "The limit of requests a minute is reached; it is one limit for all keys of the partner."
    case 503:
      // While the first read model is built the API says so itself.
      return details === null ? "A part of navlog does not answer just now; nothing is lost by that." : null
    case 0:
      return "The server cannot be reached."
    case 400:
      return code === "INVALID_WEBHOOK_URL" ? (reasons[String((details as { reason?: string } | null)?.reason)] ?? null) : null
  }
  return null
}

const reasons: Record<string, string> = {
  scheme: "Webhooks go only to https:// URLs.",
  syntax: "This is no URL.",
  port: "Webhooks go only to port 443: leave the port out.",
  credentials: "The URL has a user or a password: webhooks are signed instead.",
  forbidden_address: "The host has no address, or one that is not public: webhooks go only to public addresses.",
}

/** What a request with the key says besides; the browser keeps no answer either. */
type WithKey = { headers: { "x-api-key": string }; cache: "no-store" }

/** Makes a request with the key, and drops the key when the API does not know it. A key on trial is not in use, and not dropped. */
async function withKey<T>(request: (init: WithKey) => Promise<T>, trial?: Trial): Promise<T> {
  const with_ = trial?.key ?? key
  if (with_ === null) throw new ApiError("There is no key: enter one first.", 401, "UNAUTHORIZED", null, null, null)
  try {
    return await request({ headers: { "x-api-key": with_ }, cache: "no-store" })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const why = told(error)
    if (why.status === 401 && trial === undefined && key === with_) change(null, null, why)
    throw why
  }
}

/** Asks a partner route with the key; throws an ApiError, or the AbortError of its signal. So do the others. */
export function askPartner<P extends Path>(path: P, params: Params<P>, signal?: AbortSignal, trial?: Trial): Promise<Answer<DataOf<P>, MetaOf<P>>> {
  return withKey((init) => ask(path, params, { ...init, signal }), trial)
}

/** Has webhooks go to a URL. */
export function register(webhook: string) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks", { ...init, body: { url: webhook } })))
}

/** Has a test event sent. */
export function sendTest() {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/test", init)))
}

/** Has an event sent again. */
export function replay(eventId: string) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/deliveries/{eventId}/replay", { ...init, params: { path: { eventId } } })))
}

/** A signed statement, as the file that it is. */
export function statement(span: { from: string; to: string }, signal: AbortSignal): Promise<{ file: Blob; name: string }> {
  return withKey(async (init) => {
    const { body, response } = await said(client.GET("/api/v1/partner/statement", { ...init, signal, params: { query: span }, parseAs: "blob" }), signal)
    const name = /filename="?([\w.-]+)"?/.exec(response.headers.get("Content-Disposition") ?? "")?.[1]
    return { file: body, name: name ?? "statement.json" }
  })
}

/** Time between two looks, ms: a view asks three things so often at most, which is 6 of the 120 requests a minute. */
const EVERY = 30_000

/** Asks a partner route with the key, again when `again` changes, and from time to time while the page is seen. */
export function usePartner<P extends Path>(path: P, params: Params<P>, again: unknown, every: (data: DataOf<P>) => number = () => EVERY): Asked<DataOf<P>, MetaOf<P>> {
  const { key } = useKey()
  const of = `${key} ${url(path, params)}`
  const [asked, set] = useState<Asked<DataOf<P>, MetaOf<P>> & { of: string }>({ of: "", answer: null, error: null })
  const [tries, setTries] = useState(0)
  useEffect(() => {
    if (key === 0) return
    const left = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const later = (ms: number) => {
      timer = setTimeout(() => (document.visibilityState === "visible" ? setTries((n) => n + 1) : later(ms)), ms)
    }
    askPartner(path, params, left.signal).then(
      (answer) => {
        if (left.signal.aborted) return
        set({ of, answer, error: null })
        later(every(answer.data))
      },
      (error: unknown) => {
        if (left.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        set((before) => ({ of, answer: before.of === of ? before.answer : null, error }))
        if (error.retryAfter !== null) later(error.retryAfter * 1000)
      },
    )
    return () => {
      left.abort()
      clearTimeout(timer)
    }
  }, [of, again, tries])
  return asked.of === of ? asked : { answer: null, error: null }
}

/** How far a row of requests is. */
export interface Run {
  done: number
  /** What the API refused for good, by event. */
  failures: { id: string; message: string }[]
  /** Seconds to wait before it goes on; null while it does. */
  waits: number | null
  why: string | null
  ended: boolean
}

/**
 * Replays one event after the other. The API grants ten a minute, at once or spread, and says with Retry-After when there are
 * more: until then nothing is sent. Ends early when the signal is aborted, or the key no longer works.
 */
export async function replayAll(ids: string[], replay: (id: string) => Promise<unknown>, pause: (seconds: number) => Promise<void>, signal: AbortSignal, tell: (run: Run) => void): Promise<void> {
  let run: Run = { done: 0, failures: [], waits: null, why: null, ended: false }
  const now = (changes: Partial<Run>) => tell((run = { ...run, ...changes }))
  now({})
  for (let at = 0; at < ids.length && !signal.aborted; ) {
    const id = ids[at]!
    try {
      await replay(id)
      at++
      now({ done: run.done + 1 })
    } catch (error) {
      if (signal.aborted) break
      if (!(error instanceof ApiError)) throw error
      if (error.status === 401 || error.status === 403) {
        now({ failures: [...run.failures, { id, message: error.message }] })
        break
      }
      if ((error.status === 429 || error.status === 503) && error.retryAfter !== null) {
        now({ waits: error.retryAfter, why: error.message })
        await pause(error.retryAfter)
        now({ waits: null, why: null })
      } else {
        at++
        now({ failures: [...run.failures, { id, message: error.message }] })
      }
    }
  }
  now({ ended: true })
}

/** Waits, and no longer than until the signal is aborted. */
export function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const timer = setTimeout(resolve, seconds * 1000)
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true })
  })
}
