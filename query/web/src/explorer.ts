// Links to an external explorer, if the operator configured one: its URL is in /status, because the pages have no
// other settings.
import type { Explorer } from "./types"

/** What can be looked up there. */
export type Kind = keyof Explorer

/** The URL for a transaction's hash, an address or a block number; null if the explorer has no link for it. */
export function outside(explorer: Explorer | null, kind: Kind, value: string): string | null {
  const template = explorer?.[kind] ?? null
  // The server checks the setting; it is checked again here, because a script: link would run in this page.
  if (template === null || !/^https?:\/\//.test(template)) return null
  return template.replace(`{${kind}}`, () => encodeURIComponent(value))
}
