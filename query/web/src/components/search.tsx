// A single box for any of these: an address, a transaction, a block, a request or the id of an event.
import { useState } from "preact/hooks"
import { group } from "../format"
import { go, there, usePlace } from "../router"
import type { Vault } from "../types"

/** Where a text leads, as a path and its parameters, or null. */
export function destination(text: string, vaults: Pick<Vault, "address">[]): [path: string, changes: Record<string, string>] | null {
  const typed = text.trim()
  if (/^0x[0-9a-f]{40}$/i.test(typed)) return [vaults.some((vault) => vault.address.toLowerCase() === typed.toLowerCase()) ? `/vault/${typed}` : `/user/${typed}`, {}]
  const [, hash] = /^(0x[0-9a-f]{64})(?:-\d+(?:\.\d+)?)?$/i.exec(typed) ?? []
  if (hash !== undefined) return [`/tx/${hash.toLowerCase()}`, {}]
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(typed)) return [`/partner/delivery/${typed.toLowerCase()}`, {}]
  const [, number] = /^(?:#|block\s+|request\s+)?(\d[\d,\s]*)$/i.exec(typed) ?? []
  if (number !== undefined) return ["/search", { q: number.replace(/[,\s]/g, "") }]
  return typed === "" ? null : ["/search", { q: typed }]
}

export function Search({ vaults }: { vaults: Vault[] }) {
  const place = usePlace()
  const [text, type] = useState("")
  return (
    <form
      class="find"
      role="search"
      aria-label="Everything"
      onSubmit={(event) => {
        event.preventDefault()
        const to = destination(text, vaults)
        if (to === null) return
        type("")
        go(there(place, ...to))
      }}
    >
      <label>
        <span class="unseen">Search</span>
        <input type="search" name="q" value={text} onInput={(event) => type(event.currentTarget.value)} placeholder="Address, transaction, block, request, event id" spellcheck={false} autocomplete="off" />
      </label>
    </form>
  )
}

export const isNumber = (text: string) => /^\d{1,18}$/.test(text)
export const shown = (text: string) => (isNumber(text) ? group(text) : text)
