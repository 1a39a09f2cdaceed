// The address bar is the whole state of a page: its path selects what is shown, its query how (at which block, which
// page of which list, which number is explained). The state is kept nowhere else, so back and forward work, and a
// link shows the same to another person.
import { type Watchers, useWatched } from "./watched"

export interface Place {
  path: string
  query: URLSearchParams
}

/** Changes of query parameters: null removes a parameter. */
export type Changes = Record<string, string | number | null>

/** The parameter of the time machine. It is kept in links to other pages. */
export const AS_OF = "asOfBlock"

/** A block number in the form that the address bar and the API use, or null. */
export function blockNumber(text: string | null): string | null {
  return text !== null && /^(0|[1-9]\d{0,18})$/.test(text) ? text : null
}

export function asOf(place: Place): string | null {
  return blockNumber(place.query.get(AS_OF))
}

/** A link within the current page. */
export function here(place: Place, changes: Changes): string {
  return address(place.path, place.query, changes)
}

/** A link to another page, at the same block. */
export function there(place: Place, path: string, changes: Changes = {}): string {
  return address(path, new URLSearchParams(), { [AS_OF]: asOf(place), ...changes })
}

function address(path: string, query: URLSearchParams, changes: Changes): string {
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name)
    else next.set(name, String(value))
  }
  const text = next.toString()
  return text === "" ? path : `${path}?${text}`
}

const watchers: Watchers = new Set()

function current(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) }
}

function announce() {
  for (const watcher of watchers) watcher()
}

/** Goes to a URL. */
export function go(href: string) {
  if (href === location.pathname + location.search) return
  const before = location.pathname
  history.pushState(null, "", href)
  announce()
  if (location.pathname !== before) {
    scrollTo(0, 0)
    // A screen reader announces where the link led.
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true })
  }
}

export const usePlace = (): Place => useWatched(watchers, current)

/** Paths for which the server returns this page. */
const pages = /^\/(?:vault\/[^/]+|users|user\/[^/]+|events|tx\/[^/]+|search|compare|partner|partner\/delivery\/[^/]+|status)?$/

export function isPage(path: string): boolean {
  return pages.test(path)
}

/** Handles links to the pages without loading the document again. */
export function start() {
  addEventListener("popstate", announce)
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = (event.target as Element | null)?.closest?.("a")
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || !isPage(link.pathname)) return
    if (link.hash && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}
