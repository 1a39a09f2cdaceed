// A button whose action cannot be undone.
import { useRef, useState } from "preact/hooks"

/** A button that asks once more before it acts. */
export function Confirmed(props: { title: string; warning: string; busy: boolean; opened: () => void; act: () => void }) {
  const { title, warning, busy, opened, act } = props
  const [asked, setAsked] = useState(false)
  const start = useRef<HTMLButtonElement>(null)
  const end = () => {
    setAsked(false)
    start.current?.focus()
  }
  return (
    <>
      <p>
        <button ref={start} type="button" class="button" disabled={busy} aria-expanded={asked} onClick={() => (opened(), setAsked(!asked))}>
          {title}&hellip;
        </button>
      </p>
      {asked && (
        <div class="note warned" role="group" aria-label={`Confirm: ${title}`}>
          <p>{warning}</p>
          <p class="choices">
            <button type="button" class="button primary" disabled={busy} onClick={() => (act(), end())}>
              {title} now
            </button>{" "}
            <button type="button" class="button" onClick={end}>
              Cancel
            </button>
          </p>
        </div>
      )}
    </>
  )
}
