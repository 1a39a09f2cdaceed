// Links to an outside explorer, where the operator names one: /status says where, because the pages have no other settings.
import type { Explorer } from "./types"

/** What can be looked up there. */
export type Kind = keyof Explorer

/** The link of a transaction's hash, an address or a block number; null without an explorer for it. */
export function outside(explorer: Explorer | null, kind: Kind, value: string): string | null {
  const template = explorer?.[kind] ?? null
  // The server checks the setting; a page that makes links checks it again, since a script: link would run here.
  if (template === null || !/^https?:\/\//.test(template)) return null
  return template.replace(`{${kind}}`, () => encodeURIComponent(value))
}
