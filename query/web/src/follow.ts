// The newest events as the log grows: a page of the API, and then the events of the stream. Events that a
// reorganisation retracts while they are shown stay, marked as retracted.
import { useEffect, useState } from "preact/hooks"
import type { Asked } from "./answers"
import { ApiError, type Answer, type Query, ask, url } from "./api"
import type { ChainEvent, CursorMeta } from "./types"

/**
 * How long to wait before reopening a stream that the server rejected, ms; the browser itself reopens one that was
 * disconnected.
 */
const AGAIN = 5000
/**
 * How long a page may be hidden before it stops following, ms: a browser has few connections to a server, and all pages share
 * them.
 */
const UNSEEN = 60_000
/** The number of events at which a page is requested again. */
const MOST = 200

/** Merges the events of a unit into a list. floor: the last event of the list, where older pages begin. */
export function merge(rows: ChainEvent[], received: ChainEvent[], floor: ChainEvent | null): ChainEvent[] {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  for (const event of received) {
    // A retraction has the key of the event that it retracts; if that event was not received here, it is not part of
    // this list.
    const key = keyOf(event)
    if (event.state === "retracted" ? byKey.has(key) : !byKey.has(key) && (floor === null || newestFirst(event, floor) < 0)) byKey.set(key, event)
  }
  return [...byKey.values()].sort(newestFirst)
}

/** Identifies an event: the effects of one log have the same seq, and a log that is mined again has the same ids. */
export function keyOf(event: Pick<ChainEvent, "seq" | "id">): string {
  return `${event.seq} ${event.id}`
}

/** The order of the API. The ids of a log's effects differ in the number at their end. */
function newestFirst(a: ChainEvent, b: ChainEvent): number {
  return compare(b.blockNumber, a.blockNumber) || b.logIndex - a.logIndex || compare(b.seq, a.seq) || b.id.localeCompare(a.id, "en", { numeric: true })
}

function compare(a: string, b: string): number {
  const difference = BigInt(a) - BigInt(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** The part of an EventSource that is used. */
export interface Source {
  readonly readyState: number
  addEventListener(name: string, listener: (event: { data: string; lastEventId: string }) => void): void
  onopen: ((event: Event) => unknown) | null
  onerror: ((event: Event) => unknown) | null
  close(): void
}

const CLOSED = 2

interface Options {
  /** The kinds of the vaults: an EventSource passes on only events whose name has a listener. */
  kinds: string[]
  /** The filters of the stream. */
  query: Query<"/api/v1/stream">
  /** The page that the stream continues. */
  page: Answer<ChainEvent[], CursorMeta>
  open: (href: string) => Source
  show: (rows: ChainEvent[], connected: boolean) => void
  /** Called when the page must be requested again: it is too long, or of another generation. */
  anew: () => void
}

/** Follows the log, starting from a page. Units are applied as a whole, and events that arrive twice are in the list once. */
export class Follower {
  private rows: ChainEvent[]
  private readonly floor: ChainEvent | null
  private after: string | null
  private received: ChainEvent[] = []
  private connected = false
  private source: Source | null = null
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly options: Options) {
    const { data, meta, position } = options.page
    this.rows = data
    this.floor = meta.hasNextPage ? (data.at(-1) ?? null) : null
    this.after = position.seq
  }

  start() {
    const source = this.options.open(url("/api/v1/stream", { query: { ...this.options.query, after: this.after } }))
    this.source = source
    for (const name of [...this.options.kinds, "retracted"]) {
      source.addEventListener(name, ({ data, lastEventId }) => {
        this.received.push(JSON.parse(data) as ChainEvent)
        this.seen(lastEventId)
      })
    }
    source.addEventListener("unit", ({ data, lastEventId }) => {
      this.seen(lastEventId)
      this.unit(JSON.parse(data) as { generation: number })
    })
    source.onopen = () => this.connect(true)
    source.onerror = () => {
      this.connect(false)
      if (source.readyState !== CLOSED) return
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.start(), AGAIN)
    }
  }

  stop() {
    clearTimeout(this.timer)
    this.source?.close()
  }

  /** Stores the position of the stream, so that another one can continue there. */
  private seen(id: string) {
    if (id !== "") this.after = id
  }

  private connect(connected: boolean) {
    this.connected = connected
    this.options.show(this.rows, connected)
  }

  private unit({ generation }: { generation: number }) {
    const { page, show, anew } = this.options
    const received = this.received.splice(0)
    if (String(generation) !== page.position.generation) return anew()
    if (received.length === 0) return
    this.rows = merge(this.rows, received, this.floor)
    show(this.rows, this.connected)
    if (this.rows.length > MOST) anew()
  }
}

/** The part of a document that is used. */
type Seen = Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">

/**
 * Reports when a page has been hidden for a while, and when it is visible again after that. Returns a function that stops the
 * reports.
 */
export function whileUnseen(page: Seen, gone: () => void, back: () => void): () => void {
  let patience: ReturnType<typeof setTimeout> | undefined
  let unseen = false
  const looked = () => {
    clearTimeout(patience)
    if (page.visibilityState === "visible") {
      if (unseen) back()
      unseen = false
      return
    }
    patience = setTimeout(() => {
      unseen = true
      gone()
    }, UNSEEN)
  }
  page.addEventListener("visibilitychange", looked)
  looked() // a page that was opened in the background may never be visible
  return () => {
    clearTimeout(patience)
    page.removeEventListener("visibilitychange", looked)
  }
}

export interface Followed extends Asked<ChainEvent[], CursorMeta> {
  /** New events are being received. */
  connected: boolean
}

const nothing: Followed & { href: string | null } = { href: null, answer: null, error: null, connected: false }

/**
 * The first page of events, followed. filters are those that the stream supports, too; filters null: nothing is requested.
 * kinds are those of all vaults; when they change, the page is requested again.
 */
export function useFollowed(kinds: string[], filters: Query<"/api/v1/stream"> | null, more: Query<"/api/v1/events">): Followed {
  const params = { query: { ...filters, ...more } }
  const href = filters === null ? null : url("/api/v1/events", params)
  const [round, setRound] = useState(0)
  const [followed, set] = useState(nothing)
  useEffect(() => {
    if (href === null || filters === null) return
    const left = new AbortController()
    let follower: Follower | null = null
    let retry: ReturnType<typeof setTimeout> | undefined
    let unseen = false
    const anew = () => setRound((n) => n + 1)
    const begin = async () => {
      try {
        const page = await ask("/api/v1/events", params, { signal: left.signal })
        set({ href, answer: page, error: null, connected: false })
        const show = (data: ChainEvent[], connected: boolean) => set({ href, answer: { ...page, data }, error: null, connected })
        if (unseen) return
        follower = new Follower({ kinds, query: filters, page, open: (stream) => new EventSource(stream), show, anew })
        follower.start()
      } catch (error) {
        if (left.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        set((before) => ({ href, answer: before.href === href ? before.answer : null, error, connected: false }))
        if (error.retryAfter !== null) retry = setTimeout(anew, error.retryAfter * 1000)
      }
    }
    const gone = () => {
      unseen = true
      follower?.stop()
    }
    const end = whileUnseen(document, gone, anew)
    void begin()
    return () => {
      left.abort()
      clearTimeout(retry)
      end()
      follower?.stop()
    }
  }, [href, round, kinds.join()])
  return href !== null && followed.href === href ? followed : nothing
}
