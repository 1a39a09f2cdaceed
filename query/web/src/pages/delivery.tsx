// `/partner/delivery/ID`: one delivery, what was sent, and the response to each attempt.
import { useState } from "preact/hooks"
import { Copy } from "../components/amount"
import { DeliveryState, Replay, outcome, underWay } from "../components/deliveries"
import { Figure, Figures } from "../components/figures"
import { Key } from "../components/key"
import { Time, TxLink } from "../components/names"
import { Empty, Shown } from "../components/state"
import { useTitle } from "../components/title"
import { count } from "../format"
import { useKey, usePartner } from "../partner"
import { there, usePlace } from "../router"
import type { DeliveryDetail } from "../types"

export function DeliveryPage({ address: eventId }: { address: string }) {
  useTitle(`Delivery ${eventId}`)
  const { key } = useKey()
  const place = usePlace()
  return (
    <>
      <p class="crumb"><a href={there(place, "/partner", { view: "webhooks" })}>Delivery log</a></p>
      <h1>
        Delivery <code class="address">{eventId}</code>
        <Copy text={eventId} what="the id" />
      </h1>
      <Key />
      {key === 0 ? <Empty>Enter your API key to see this delivery.</Empty> : <Loaded key={key} eventId={eventId} />}
    </>
  )
}

/** Polling interval, ms: 12 of the 120 requests per minute while the delivery is pending, otherwise 2. */
const every = (delivery: DeliveryDetail) => (underWay(delivery) ? 5_000 : 30_000)

function Loaded({ eventId }: { eventId: string }) {
  const [again, setAgain] = useState(0)
  const asked = usePartner("/api/v1/partner/webhooks/deliveries/{eventId}", { path: { eventId } }, again, every)
  return (
    <Shown asked={asked}>
      {(delivery) => (
        <>
          <Figures>
            <Figure title="State"><DeliveryState state={delivery.state} /></Figure>
            <Figure wide title="Type"><code>{delivery.type}</code></Figure>
            <Figure title="Number">{delivery.sequence ?? <span class="faint">&ndash;</span>}</Figure>
            <Figure wide title="Created, UTC"><Time iso={delivery.createdAt} /></Figure>
            <Figure wide title={delivery.finishedAt === null ? "Next attempt, UTC" : "Ended, UTC"}><Time iso={delivery.finishedAt ?? delivery.nextAttemptAt} /></Figure>
            <Transaction body={delivery.request.body} />
          </Figures>
          {delivery.correctedAt !== undefined && <p class="note warned">A reorganisation corrected the body at {delivery.correctedAt}. Attempts before then sent an older body; a replay sends the newest.</p>}
          {!underWay(delivery) && <p><Replay id={eventId} done={() => setAgain((n) => n + 1)} /></p>}
          <h2>Request</h2>
          <p class="faint">Every attempt sends these headers and, in addition, <code>X-Service-Timestamp</code> and <code>X-Service-Signature</code>, which are computed for each attempt and not stored.</p>
          <pre tabIndex={0} aria-label="Headers of the request">{Object.entries(delivery.request.headers).map(([name, value]) => `${name}: ${value}`).join("\n")}</pre>
          <pre tabIndex={0} aria-label="Body of the request">{pretty(delivery.request.body)}</pre>
          <p><Copy text={delivery.request.body} what="the body, byte for byte" /> <span class="faint">Copies the exact body; white space was added for display.</span></p>
          <h2>{count(delivery.attempts.length, "attempt")}</h2>
          {delivery.attempts.length === 0 ? <Empty>No attempt yet.</Empty> : [...delivery.attempts].reverse().map((attempt) => <OneAttempt key={attempt.number} attempt={attempt} />)}
        </>
      )}
    </Shown>
  )
}

function OneAttempt({ attempt }: { attempt: DeliveryDetail["attempts"][number] }) {
  const phases = Object.entries({ name: attempt.dnsUs, connection: attempt.connectUs, TLS: attempt.tlsUs, "first byte": attempt.firstByteUs }).filter((phase): phase is [string, number] => phase[1] !== null)
  const good = attempt.status !== null && attempt.status >= 200 && attempt.status < 300
  return (
    <section class="attempt" aria-label={`Attempt ${attempt.number}`}>
      <h3>
        Attempt {attempt.number} <span class={`badge ${good ? "good" : "bad"}`}>{attempt.status ?? "no response"}</span>
      </h3>
      <p><Time iso={attempt.startedAt} /> UTC, {attempt.durationMs} ms{phases.length > 0 && <> ({phases.map(([name, us]) => `${name} ${(us / 1000).toFixed(1)} ms`).join(", ")})</>}</p>
      <p>to <code class="long">{attempt.url}</code></p>
      {attempt.error !== null && <p class="long error">{outcome(attempt)}</p>}
      {attempt.response === null ? <p class="faint">No body of a response is kept.</p> : attempt.response === "" ? <p class="faint">The response had no body.</p> : <pre tabIndex={0} aria-label={`Body of the response to attempt ${attempt.number}`}>{attempt.response}</pre>}
    </section>
  )
}

function Transaction({ body }: { body: string }) {
  const hash = transactionOf(body)
  return hash === null ? null : <Figure wide title="Transaction"><TxLink hash={hash} /></Figure>
}

function transactionOf(body: string): string | null {
  try {
    const hash = (JSON.parse(body) as { data?: { txHash?: unknown } }).data?.txHash
    return typeof hash === "string" ? hash : null
  } catch {
    return null
  }
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
