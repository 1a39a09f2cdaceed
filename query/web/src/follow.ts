// The newest events as the log goes on: a page of the API, and what the stream tells after it. What a reorganisation takes
// back while it is looked at stays, and is shown as that.
import { useEffect, useState } from "preact/hooks"
import type { Asked } from "./answers"
import { ApiError, type Answer, type Query, ask, url } from "./api"
import { kinds } from "./components/kinds"
import type { ChainEvent, CursorMeta } from "./types"

/** ms between two tries to open a stream that the server refused; one that broke off the browser opens again itself. */
const AGAIN = 5000
/** ms that a page is not seen after which it follows no more: a browser has few connections to a server, and all pages share them. */
const UNSEEN = 60_000
/** How many events a page grows to before it is asked for anew. */
const MOST = 200

/** Puts what a unit of the log tells into the events of a list. floor: the last of them, where older pages begin. */
export function merge(rows: ChainEvent[], told: ChainEvent[], floor: ChainEvent | null): ChainEvent[] {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  for (const event of told) {
    // What is taken back has the seq under which it was told; what was not told here is not of this list.
    if (event.state === "retracted" ? bySeq.has(event.seq) : !bySeq.has(event.seq) && (floor === null || newestFirst(event, floor) < 0)) bySeq.set(event.seq, event)
  }
  return [...bySeq.values()].sort(newestFirst)
}

/** The order of the API. */
function newestFirst(a: ChainEvent, b: ChainEvent): number {
  return compare(b.blockNumber, a.blockNumber) || b.logIndex - a.logIndex || compare(b.seq, a.seq)
}

function compare(a: string, b: string): number {
  const difference = BigInt(a) - BigInt(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** What of an EventSource is needed. */
export interface Source {
  readonly readyState: number
  addEventListener(name: string, listener: (event: { data: string; lastEventId: string }) => void): void
  onopen: ((event: Event) => unknown) | null
  onerror: ((event: Event) => unknown) | null
  close(): void
}

const CLOSED = 2

interface Options {
  /** The filters of the stream. */
  query: Query<"/api/v1/stream">
  /** The page that the stream goes on from. */
  page: Answer<ChainEvent[], CursorMeta>
  open: (href: string) => Source
  show: (rows: ChainEvent[], connected: boolean) => void
  /** The page is to be asked for again: it grew too long, or is of another generation. */
  anew: () => void
}

/** Follows the log from a page on. Units are applied whole, and what comes twice is there once. */
export class Follower {
  private rows: ChainEvent[]
  private readonly floor: ChainEvent | null
  private after: string | null
  private told: ChainEvent[] = []
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
    for (const name of [...Object.keys(kinds), "retracted"]) {
      source.addEventListener(name, ({ data, lastEventId }) => {
        this.told.push(JSON.parse(data) as ChainEvent)
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

  /** Keeps where the stream is, for another that goes on from there. */
  private seen(id: string) {
    if (id !== "") this.after = id
  }

  private connect(connected: boolean) {
    this.connected = connected
    this.options.show(this.rows, connected)
  }

  private unit({ generation }: { generation: number }) {
    const { page, show, anew } = this.options
    const told = this.told.splice(0)
    if (String(generation) !== page.position.generation) return anew()
    if (told.length === 0) return
    this.rows = merge(this.rows, told, this.floor)
    show(this.rows, this.connected)
    if (this.rows.length > MOST) anew()
  }
}

/** What of a document is needed. */
type Seen = Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">

/** Tells when a page has not been seen for a while, and when it is seen again after that. Gives what ends it. */
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
  looked() // one that was opened in the background may never be seen
  return () => {
    clearTimeout(patience)
    page.removeEventListener("visibilitychange", looked)
  }
}

export interface Followed extends Asked<ChainEvent[], CursorMeta> {
  /** What comes next is heard of. */
  connected: boolean
}

const nothing: Followed & { href: string | null } = { href: null, answer: null, error: null, connected: false }

/** The first page of events, followed. filters are those that the stream has too; filters null: nothing is asked. */
export function useFollowed(filters: Query<"/api/v1/stream"> | null, more: Query<"/api/v1/events">): Followed {
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
        follower = new Follower({ query: filters, page, open: (stream) => new EventSource(stream), show, anew })
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
  }, [href, round])
  return href !== null && followed.href === href ? followed : nothing
}
