// The API key of a partner: entered once, checked at once, and kept for as long as its owner chooses.
import { useRef, useState } from "preact/hooks"
import { askPartner, removeKey, giveKey, useKey } from "../partner"
import { Failed } from "./state"
import { ApiError } from "../api"

/** The pressed button has disappeared with its focus, so keyboard users continue at the page, not at the top of the window. */
function toMain() {
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true })
}

export function Key() {
  const { key, name, refused } = useKey()
  const field = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  if (key !== 0) {
    return (
      <p class="key">
        Signed in{name !== null && <> as <strong>{name}</strong></>}.{" "}
        <button type="button" class="button" onClick={() => (removeKey(), toMain())}>
          Forget the key
        </button>
      </p>
    )
  }
  const use = async (text: string, keep: boolean) => {
    setBusy(true)
    setError(null)
    try {
      await giveKey(text, keep, async (init) => (await askPartner("/api/v1/partner/stats", {}, undefined, init)).data.partnerName)
      toMain()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setError(error)
    } finally {
      setBusy(false)
    }
  }
  const shown = error ?? refused
  return (
    <>
      {shown !== null && <Failed error={shown} again={false} />}
      <form
        class="filters"
        aria-label="API key"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault()
          const text = field.current?.value.trim() ?? ""
          const keep = event.currentTarget.querySelector<HTMLInputElement>("input[type=checkbox]")?.checked ?? false
          if (field.current !== null) field.current.value = ""
          if (text !== "") void use(text, keep)
        }}
      >
        {/* Without a name the field is never part of an address, and without a value its content cannot be read from the page. */}
        <label class="wide">
          API key
          <input ref={field} type="password" required autocomplete="off" spellcheck={false} placeholder="nk_live_…" maxLength={200} pattern="\s*[\x21-\x7e]+\s*" title="letters, digits and underscores, without spaces" />
        </label>
        <label class="check">
          <input type="checkbox" /> keep it for this tab
        </label>
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Checking…" : "Use the key"}
        </button>
      </form>
      <p class="faint">The key stays in the memory of this page, and on request in this tab until it is closed. The operator of this navlog issues keys.</p>
    </>
  )
}
