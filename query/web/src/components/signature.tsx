// Verifies the signature of a webhook that the visitor received. It stays in the page: nothing is sent or kept.
import { useState } from "preact/hooks"
import { type Verdict, verify } from "../signature"

const verdicts: Record<Verdict, [kind: string, text: string]> = {
  holds: ["proven", "The signature holds: this secret signed exactly this body at this timestamp."],
  differs: ["failed", "The signature does not hold: another secret, another timestamp, or not the raw body, byte for byte as it came."],
  malformed: ["failed", "This is not a signature. A signature is sha256= and 64 hexadecimal digits in lower case."],
}

export function VerifySignature() {
  const [verdict, set] = useState<Verdict | null>(null)
  if (globalThis.crypto?.subtle === undefined) return <p class="note warned">The browser computes signatures only for pages from https:// or from this machine.</p>
  return (
    <form
      class="fields"
      aria-label="Verify a signature"
      autocomplete="off"
      onInput={() => set(null)}
      onSubmit={(event) => {
        event.preventDefault()
        // The fields have no names, so that their content never becomes part of an address.
        const [secret, timestamp, body, signature] = Array.from(event.currentTarget.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("input, textarea"), (field) => field.value)
        void verify(secret!.trim(), timestamp!.trim(), body!, signature!.trim()).then(set)
      }}
    >
      <label>
        Signing secret
        <input type="password" required autocomplete="off" spellcheck={false} placeholder="whsec_…" />
      </label>
      <label>
        X-Service-Timestamp
        <input required inputMode="numeric" autocomplete="off" placeholder="1614265330" />
      </label>
      <label>
        Raw body, byte for byte
        <textarea rows={5} spellcheck={false} autocomplete="off" placeholder={'{"id":"…","version":1,…}'} />
      </label>
      <label>
        X-Service-Signature
        <input required spellcheck={false} autocomplete="off" placeholder="sha256=…" />
      </label>
      <div>
        <button type="submit" class="button">
          Verify
        </button>
      </div>
      <div role="status">{verdict !== null && <p class={`note ${verdicts[verdict][0]}`}>{verdicts[verdict][1]}</p>}</div>
    </form>
  )
}
