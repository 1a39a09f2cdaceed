// Requests to the partner routes. The API key is a variable of this module: it is not in the address bar and not in
// cached responses, and it is gone when the page is left. Only on request is it stored in the tab, until the tab is
// closed or the key is forgotten.
import { useEffect, useState } from "preact/hooks"
import { ApiError, type Answer, type DataOf, type MetaOf, type Params, type Path, answered, ask, client, said, url } from "./api"
import type { Asked } from "./answers"
import { type Watchers, useWatched } from "./watched"

/** Where a key is stored that should last as long as the tab. */
const KEPT = "navlog-key"

let key: string | null = kept()
/** The partner's name, once the API has returned it. */
let name: string | null = null
/** Counts the keys: a response for an earlier key is not shown under a later one. */
let nth = key === null ? 0 : 1
/** Why there is no key any more, if the API rejected it. */
let refused: ApiError | null = null
const watchers: Watchers = new Set()

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEPT)
  } catch {
    return null // The browser denies storage.
  }
}

function keep(text: string | null) {
  try {
    if (text === null) sessionStorage.removeItem(KEPT)
    else sessionStorage.setItem(KEPT, text)
  } catch {
    // The browser denies storage: the key lasts as long as the page.
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

/** Marks a request with a key that is not in use yet. */
export type Trial = { key: string }

/**
 * Accepts a key once the API knows it: whose returns its partner's name, or throws. With inTab it is kept until the tab is
 * closed.
 */
export async function giveKey(text: string, inTab: boolean, whose: (trial: Trial) => Promise<string>): Promise<void> {
  const found = await whose({ key: text })
  change(text, found, null)
  if (inTab) keep(text)
}

export function removeKey() {
  change(null, null, null)
}

export interface KeyView {
  /** 0 without a key; changes with each key. */
  key: number
  name: string | null
  refused: ApiError | null
}

const seen = (): KeyView => ({ key: key === null ? 0 : nth, name, refused })

export const useKey = (): KeyView => useWatched(watchers, seen)

/** An error of a partner route as a sentence that says what to do. */
export function explained(error: ApiError): ApiError {
  const message = sentence(error)
  return message === null ? error : new ApiError(message, error.status, error.code, error.details, error.requestId, error.retryAfter)
}

function sentence({ status, code, details, retryAfter }: ApiError): string | null {
  switch (status) {
    case 401:
      return "This key is unknown or was revoked: check that it is complete, or ask the operator for a new one."
    case 403:
      return "The key is valid, but its partner is disabled: only the operator can enable it again."
    case 503:
      // The API explains it itself while the first read model is built, and if it is not known whether a change happened.
      return details === null && retryAfter !== null ? "A part of navlog is not responding at the moment; no data is lost." : null
    case 0:
      return "The server cannot be reached."
    case 400:
      return code === "INVALID_WEBHOOK_URL" ? (reasons[String((details as { reason?: string } | null)?.reason)] ?? null) : null
  }
  return null
}

const reasons: Record<string, string> = {
  scheme: "Webhooks go only to https:// URLs.",
  port: "Webhooks go only to port 443: leave the port out.",
  credentials: "The URL has a user or a password: webhooks are signed instead.",
  forbidden_address: "The host has no address, or one that is not public: webhooks go only to public addresses.",
}

/** The additional options of a request with the key; the browser does not cache the answer either. */
type WithKey = { headers: { "x-api-key": string }; cache: "no-store" }

/**
 * Makes a request with the key, and drops the key if the API does not know it. A key on trial is not in use, so it is not
 * dropped.
 */
async function withKey<T>(request: (init: WithKey) => Promise<T>, trial?: Trial): Promise<T> {
  const with_ = trial?.key ?? key
  if (with_ === null) throw new ApiError("There is no key: enter one first.", 401, "UNAUTHORIZED", null, null, null)
  try {
    return await request({ headers: { "x-api-key": with_ }, cache: "no-store" })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const why = explained(error)
    if (why.status === 401 && trial === undefined && key === with_) change(null, null, why)
    throw why
  }
}

/**
 * Sends a request with the key to a partner route; throws an ApiError, or the AbortError of its signal. So do the functions
 * below.
 */
export function askPartner<P extends Path>(path: P, params: Params<P>, signal?: AbortSignal, trial?: Trial): Promise<Answer<DataOf<P>, MetaOf<P>>> {
  return withKey((init) => ask(path, params, { ...init, signal }), trial)
}

/** Registers a URL for webhooks. */
export function register(webhook: string) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks", { ...init, body: { url: webhook } })))
}

/** Requests a test event. */
export function sendTest() {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/test", init)))
}

/** Requests a replay of an event. */
export function replay(eventId: string) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/deliveries/{eventId}/replay", { ...init, params: { path: { eventId } } })))
}

/** Sets certificates for a webhook URL, by default the registered one. */
export function setCertificates(change: { authorities?: string; certificate?: string; key?: string; url?: string }) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/certificates", { ...init, body: change })))
}

/** Removes the authorities or the client certificate for a webhook URL. */
export function removeCertificates(removal: { url: string; only: "authorities" | "client" }) {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/certificates/remove", { ...init, body: removal })))
}

/** Has the signing secret replaced, with the usual overlap. */
export function rotateSecret() {
  return withKey((init) => answered(client.POST("/api/v1/partner/webhooks/secret/rotate", init)))
}

/** Has a new API key issued. If that revokes the key in use, the new one is used from here on. */
export async function rotateKey() {
  const before = key
  const answer = await withKey((init) => answered(client.POST("/api/v1/partner/keys/rotate", init)))
  if (before !== null && key === before && answer.data.revoked.includes(before.slice(-4))) {
    key = answer.data.apiKey
    if (kept() !== null) keep(key)
  }
  return answer
}

/** A signed statement, as a file. */
export function statement(span: { from: string; to: string }, signal: AbortSignal): Promise<{ file: Blob; name: string }> {
  return withKey(async (init) => {
    const { body, response } = await said(client.GET("/api/v1/partner/statement", { ...init, signal, params: { query: span }, parseAs: "blob" }), signal)
    const name = /filename="?([\w.-]+)"?/.exec(response.headers.get("Content-Disposition") ?? "")?.[1]
    return { file: body, name: name ?? "statement.json" }
  })
}

/** Polling interval, ms: a view makes up to three requests at this interval, which is 6 of the 120 requests per minute. */
const EVERY = 30_000

/**
 * Requests an answer of a partner route with the key: again when `again` changes, and from time to time while the page is
 * visible.
 */
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

/** The progress of a series of requests. */
export interface Run {
  done: number
  /** What the API rejected for good, by event. */
  failures: { id: string; message: string }[]
  /** Seconds to wait before it continues; null while it is running. */
  waits: number | null
  why: string | null
  ended: boolean
}

/** The statuses of responses to requests that may be sent again: limits, and a server, proxy or network that is down. */
const PASSING = [0, 429, 502, 503, 504]

/**
 * Replays one event after another. The API allows ten per minute, at once or spread, and beyond that responds with
 * Retry-After: until then nothing is sent, nor while the server cannot be reached. Ends early if the signal is aborted, or
 * the key stops working.
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
      if (PASSING.includes(error.status) && error.retryAfter !== null) {
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

/** Waits, but not after the signal is aborted. */
export function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const timer = setTimeout(resolve, seconds * 1000)
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true })
  })
}
