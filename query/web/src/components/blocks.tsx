// Selects a block: with a slider over the chain, by its number, or one step at a time. The selected block is in the
// address bar; while the slider is dragged, the block under it is already shown.
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { group } from "../format"
import { blockNumber, go, usePlace } from "../router"

/** How many marks a screen reader announces. */
const TOLD = 5

/** How long the slider must rest before the page goes to its block, ms. */
const SETTLED = 200

interface Props {
  id: string
  label: string
  first: string
  newest: string
  block: string
  /** The URL for a block. */
  to: (block: string) => string
  /** Positions on the slider where something happened. */
  marks?: Mark[]
}

export interface Mark {
  block: string
  title: string
}

export function BlockPicker({ id, label, first, newest, block, to, marks = [] }: Props) {
  const [drawn, draw] = useState<string | null>(null)
  // The text of the field while it has the focus: the visitor may be typing, and the newest block keeps changing.
  const [typed, type] = useState<string | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const shown = drawn ?? block
  const { path } = usePlace()
  // The page may show something else when the time has passed.
  const latest = useRef(to)
  latest.current = to
  // A visitor who goes on to another page stays there. It runs at once, and not after the next frame: on a busy machine
  // the time may have passed before that.
  useLayoutEffect(
    () => () => {
      clearTimeout(timer.current)
      draw(null)
    },
    [path],
  )
  const move = (next: string) => {
    draw(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      draw(null)
      go(latest.current(next))
    }, SETTLED)
  }
  const inside = (next: bigint) => (next < BigInt(first) ? first : next > BigInt(newest) ? newest : String(next))
  const span = Number(BigInt(newest) - BigInt(first)) || 1
  return (
    <>
      <label for={id}>{label}</label>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const wanted = blockNumber(String(new FormData(event.currentTarget).get("block")).replace(/[,\s]/g, ""))
          if (wanted === null) return
          const next = inside(BigInt(wanted))
          type(group(next))
          go(to(next))
        }}
      >
        <input
          name="block"
          class="block"
          aria-label={`${label}: number`}
          inputMode="numeric"
          size={Math.max(6, group(newest).length)}
          value={typed ?? group(shown)}
          onFocus={(event) => type(event.currentTarget.value)}
          onInput={(event) => type(event.currentTarget.value)}
          // If the window loses the focus, the field keeps it for when the visitor returns.
          onBlur={(event) => document.activeElement !== event.currentTarget && type(null)}
          autocomplete="off"
        />
      </form>
      <a class="step" href={to(inside(BigInt(shown) - 1n))} aria-label={`−1: ${label}, one earlier`}>
        &minus;1
      </a>
      <span class="rail">
        <input
          id={id}
          type="range"
          min={first}
          max={newest}
          step={1}
          value={shown}
          aria-valuetext={`block ${group(shown)}${shown === newest ? ", the newest" : ""}`}
          onInput={(event) => move(event.currentTarget.value)}
        />
        {marks.length > 0 && (
          <svg class="marks" viewBox="0 0 1000 4" preserveAspectRatio="none" role="img" aria-label={`Marks: ${marks.map((mark) => mark.title).slice(0, TOLD).join("; ")}${marks.length > TOLD ? "; and others" : ""}`}>
            {marks.map((mark) => {
              const x = (Number(BigInt(mark.block) - BigInt(first)) / span) * 1000
              return (
                <line key={mark.block} x1={x} x2={x} y1="0" y2="4">
                  <title>{mark.title}</title>
                </line>
              )
            })}
          </svg>
        )}
      </span>
      <a class="step" href={to(inside(BigInt(shown) + 1n))} aria-label={`+1: ${label}, one later`}>
        +1
      </a>
    </>
  )
}
