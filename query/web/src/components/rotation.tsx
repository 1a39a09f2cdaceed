// The signing secret and the API keys of a partner, replaced at a request of the partner, where the operator allows it.
import type { ComponentChildren } from "preact"
import { rotateKey, rotateSecret } from "../partner"
import { Copy } from "./amount"
import { Confirmed } from "./confirmed"
import { Time } from "./names"
import { useSending } from "./sending"
import { Failed } from "./state"

export function Rotation() {
  return (
    <>
      <h2>Secret and keys</h2>
      <Rotated
        title="Rotate the signing secret"
        what="the new signing secret"
        rotate={rotateSecret}
        value={({ signingSecret }) => signingSecret}
        warning="You get a new secret. Webhooks are signed with the old and the new one until the overlap ends, and only with the new one after that."
        next={({ takesOverAt }) => (
          <>
            Deploy the new secret before <Time iso={takesOverAt} /> UTC. Until then webhooks have both signatures, the new one in{" "}
            <code>X-Service-Signature-Next</code>; after that only the new secret signs.
          </>
        )}
      />
      <Rotated
        title="Rotate the API key"
        what="the new API key"
        rotate={rotateKey}
        value={({ apiKey }) => apiKey}
        warning="You get a new key. Two keys are live at most: if you have two already, the older one is refused from then on."
        next={({ revoked }) =>
          revoked.length === 0 ? (
            "Use the new key from now on. The old key works until the next rotation."
          ) : (
            <>
              Use the new key from now on. The key that ends with <code>{revoked.join(", ")}</code> was revoked; the other old key works until the next
              rotation.
            </>
          )
        }
      />
    </>
  )
}

/** A button that replaces something, and then shows the new value, which cannot be read again. */
function Rotated<T>(props: {
  title: string
  what: string
  warning: string
  rotate: () => Promise<{ data: T }>
  value: (data: T) => string
  next: (data: T) => ComponentChildren
}) {
  const { title, what, warning, rotate, value, next } = props
  const { busy, error, data, send, forget } = useSending<T>()
  return (
    <section class="rotation" aria-label={title}>
      <Confirmed title={title} warning={warning} busy={busy} opened={forget} act={() => send(rotate(), () => undefined)} />
      {error !== null && <Failed error={error} again={false} />}
      <div role="status">
        {data !== null && (
          <div class="note proven">
            <p>
              This is {what}. It is shown only once: keep it now.
            </p>
            <p>
              <code class="long">{value(data)}</code> <Copy text={value(data)} what={what} />
            </p>
            <p>{next(data)}</p>
          </div>
        )}
      </div>
    </section>
  )
}
