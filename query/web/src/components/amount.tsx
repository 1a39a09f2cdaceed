// Amounts, shortened for reading and exact on request: the title has every digit and the native units, the button
// copies what the title shows, and the amount itself links to its proof if the API can explain it.
import { useState } from "preact/hooks"
import { exact, group, short } from "../format"
import { here, usePlace } from "../router"
import type { Token } from "../types"

/** The unit of an amount. */
export interface Unit {
  decimals: number
  symbol: string
  /** Decimals that are shown. */
  digits: number
}

export const inAsset = (token: Token): Unit => ({ decimals: token.decimals, symbol: token.symbol, digits: Math.min(2, token.decimals) })
export const inShares = (vault: { decimals: number; symbol: string }): Unit => ({ decimals: vault.decimals, symbol: vault.symbol, digits: Math.min(2, vault.decimals) })
/** NAVs have 18 decimals, whatever the asset has. */
export const inNav: Unit = { decimals: 18, symbol: "", digits: 6 }
export const inNumber: Unit = { decimals: 0, symbol: "", digits: 0 }

/** Where a number is found in the API: the path of an answer, and a JSON pointer into its data. */
export interface Source {
  of: string
  field: string
}

interface Props {
  value: string | number | null
  unit: Unit
  source?: Source
  /** Shows the symbol; a table shows it in its header instead. */
  symbol?: boolean
}

export function Amount({ value, unit, source, symbol = false }: Props) {
  const place = usePlace()
  if (value === null) return <span class="faint">&ndash;</span>
  const native = String(value)
  const full = exact(native, unit.decimals)
  const title = unit.decimals === 0 ? full : `${full}${unit.symbol === "" ? "" : ` ${unit.symbol}`}  =  ${group(native)} native units`
  const text = (
    <>
      {short(native, unit.decimals, unit.digits)}
      {symbol && unit.symbol !== "" && <span class="symbol"> {unit.symbol}</span>}
    </>
  )
  return (
    <span class="amount">
      {source === undefined ? (
        <span title={title}>{text}</span>
      ) : (
        <a class="number" href={here(place, { explain: source.of, field: source.field, explainPage: null })} title={`${title}\nOpen its proof`}>
          {text}
        </a>
      )}
      {unit.decimals > 0 && <Copy text={full.replaceAll(",", "")} what={`${full} ${unit.symbol}`} />}
    </span>
  )
}

/** A button that copies a text, usable by pointer and by keyboard. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setDone(true)
      setTimeout(() => setDone(false), 1500)
    } catch {
      setDone(false) // The browser denies the clipboard to pages that are not from a secure origin.
    }
  }
  return (
    <button type="button" class="copy" aria-label={done ? "Copied" : `Copy ${what}`} title={done ? "Copied" : "Copy"} onClick={() => void copy()}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {done ? <path d="M3 8.5l3.2 3L13 4.5" /> : <path d="M5.5 5.5h7v8h-7zM3.5 10.5v-8h7" />}
      </svg>
    </button>
  )
}
