// The webhook URL, its state, and the first webhook step by step.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { ApiError } from "../api"
import type { Asked } from "../answers"
import { askPartner, pause, register, sendTest, usePartner } from "../partner"
import { here, usePlace } from "../router"
import type { Delivery, DeliveryDetail, Webhook } from "../types"
import { Certificates } from "./certificates"
import { Attempts, Deliveries, DeliveryState, underWay } from "./deliveries"
import { EndpointDays } from "./endpointdays"
import { Figure, Figures } from "./figures"
import { Time } from "./names"
import { Rotation } from "./rotation"
import { useSending } from "./sending"
import { VerifySignature } from "./signature"
import { Failed, Shown } from "./state"

export function Webhooks() {
  const [again, setAgain] = useState(0)
  const look = () => setAgain((n) => n + 1)
  const webhook = useWebhook(again)
  return (
    <>
      <Endpoint webhook={webhook} />
      <Register done={look} />
      <SendTest done={look} />
      {webhook.answer !== null && <Certificates registered={webhook.answer.data.webhookUrl} changeable={webhook.answer.data.rotation} />}
      {webhook.answer?.data.rotation === true && <Rotation />}
      <h2>The endpoint by day</h2>
      <EndpointDays again={again} />
      <h2>Delivery log</h2>
      <Deliveries sent={again} />
    </>
  )
}

const breakers: Record<Webhook["breaker"]["state"], [text: string, kind: string]> = {
  closed: ["Delivering", "good"],
  open: ["Paused: nearly every attempt failed", "bad"],
  "half-open": ["Trying one event", "warn"],
}

function EndpointState({ parked, breaker }: { parked: boolean; breaker: Webhook["breaker"]["state"] }) {
  const [text, kind] = parked ? ["Paused by the operator", "warn"] : breakers[breaker]
  return <span class={`badge ${kind}`}>{text}</span>
}

const useWebhook = (again: number) => usePartner("/api/v1/partner/webhooks", {}, again)

function Endpoint({ webhook }: { webhook: Asked<Webhook, unknown> }) {
  return (
    <Shown asked={webhook}>
      {({ webhookUrl, parked, breaker, updatedAt, lastSuccessAt, lastFailureAt }) => (
        <>
          <p>
            {webhookUrl === null ? (
              "No URL is registered. Events are kept and can be replayed once there is one."
            ) : (
              <>
                Webhooks go to <code class="long">{webhookUrl}</code>
              </>
            )}
          </p>
          <Figures>
            <Figure title="Endpoint">
              <EndpointState parked={parked} breaker={breaker.state} />
            </Figure>
            {!parked && breaker.openUntil !== null && (
              <Figure wide title="Until, UTC">
                <Time iso={breaker.openUntil} />
              </Figure>
            )}
            <Figure wide title="Last success, UTC">
              <Time iso={lastSuccessAt} />
            </Figure>
            <Figure wide title="Last failure, UTC">
              <Time iso={lastFailureAt} />
            </Figure>
            <Figure wide title="Changed, UTC">
              <Time iso={updatedAt} />
            </Figure>
          </Figures>
        </>
      )}
    </Shown>
  )
}

function Register({ done }: { done: () => void }) {
  const { busy, error, data, send } = useSending<{ webhookUrl: string }>()
  return (
    <>
      <form
        class="filters"
        aria-label="Register a webhook URL"
        onSubmit={(event) => {
          event.preventDefault()
          const webhookUrl = String(new FormData(event.currentTarget).get("url")).trim()
          send(register(webhookUrl), done)
        }}
      >
        <label class="wide">
          URL, https:// and public; it replaces the one before
          <input name="url" type="url" required maxLength={2048} autocomplete="off" spellcheck={false} placeholder="https://partner.example/webhooks" />
        </label>
        <button type="submit" class="button" disabled={busy}>
          Register
        </button>
      </form>
      {error !== null && <Failed error={error} again={false} />}
      <div role="status">
        {data !== null && (
          <p class="note proven">
            Attempts that begin a second from now go to <code class="long">{data.webhookUrl}</code>.
          </p>
        )}
      </div>
    </>
  )
}

function SendTest({ done }: { done: (eventId: string) => void }) {
  const { busy, error, data, send } = useSending<{ eventId: string }>()
  return (
    <>
      <p>
        <button type="button" class="button" disabled={busy} onClick={() => send(sendTest(), ({ eventId }) => done(eventId))}>
          Send a test event
        </button>
      </p>
      {error !== null && <Failed error={error.status === 404 ? new ApiError("There is no URL to send it to: register one first.", 404, error.code, null, error.requestId, null) : error} again={false} />}
      <div role="status">
        {data !== null && (
          <p class="note proven">
            It was requested, with the id <code class="long">{data.eventId}</code>.
          </p>
        )}
      </div>
    </>
  )
}

/** "The first webhook in five minutes" of docs/webhooks.md, from its third step onwards. */
export function FirstWebhook() {
  const place = usePlace()
  const [registered, setRegistered] = useState(0)
  const webhook = useWebhook(registered)
  const [eventId, setEventId] = useState<string | null>(null)
  return (
    <ol class="steps">
      <Step title="Register a URL">
        <p>Your receiver must respond with 2xx within 10 seconds. navlog includes sample receivers in Go, TypeScript and Python.</p>
        <Endpoint webhook={webhook} />
        <Register done={() => setRegistered((n) => n + 1)} />
      </Step>
      <Step title="Send a test event">
        <p>
          An event of type <code>webhook.test</code>, signed and retried like any other.
        </p>
        <SendTest done={setEventId} />
      </Step>
      <Step title="Watch it arrive">{eventId === null ? <p class="faint">Send a test event first: the delivery is shown here.</p> : <Watched key={eventId} eventId={eventId} />}</Step>
      <Step title="Verify the signature">
        <p>
          Your receiver does this for each webhook, over the raw body, and rejects a timestamp that is more than 300 seconds away. Try it here with the
          request that arrived:
        </p>
        <VerifySignature />
      </Step>
      <Step title="Next">
        <p>
          Expect duplicates, and events out of order. The{" "}
          <a href={here(place, { view: "webhooks" })}>delivery log</a> shows what was sent.
        </p>
      </Step>
    </ol>
  )
}

function Step({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <li>
      <h2>{title}</h2>
      {children}
    </li>
  )
}

/**
 * Polling interval for the test event, and for how long, s. Attempts take less than 40 seconds in total if the receiver does
 * not respond.
 */
const EVERY = 2
const PATIENCE = 180

/** A pending test event, until it has arrived or failed. */
function Watched({ eventId }: { eventId: string }) {
  const [delivery, setDelivery] = useState<DeliveryDetail | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [ended, setEnded] = useState(false)
  useEffect(() => {
    const left = new AbortController()
    const watch = async () => {
      for (const until = Date.now() + PATIENCE * 1000; Date.now() < until && !left.signal.aborted; ) {
        let wait = EVERY
        try {
          const { data } = await askPartner("/api/v1/partner/webhooks/deliveries/{eventId}", { path: { eventId } }, left.signal)
          setError(null)
          setDelivery(data)
          if (!underWay(data)) break
        } catch (error) {
          if (left.signal.aborted) return
          if (!(error instanceof ApiError)) throw error
          if (error.status === 404) {
            setError(null) // it is not in the log yet
          } else {
            setError(error)
            if (error.retryAfter === null) break
            wait = error.retryAfter
          }
        }
        await pause(wait, left.signal)
      }
      if (!left.signal.aborted) setEnded(true)
    }
    void watch()
    return () => left.abort()
  }, [eventId])
  return (
    <>
      {error !== null && <Failed error={error} again={!ended} />}
      <div role="status">
        {delivery === null ? (
          ended ? (
            error === null && <p class="note warned">It is not in the delivery log. None is sent while 100 test events are waiting for the receiver.</p>
          ) : (
            <p class="note">Looking for it in the delivery log&hellip;</p>
          )
        ) : (
          <div class={`note ${delivery.state === "delivered" ? "proven" : delivery.state === "failed" ? "failed" : ""}`}>
            <p>
              <DeliveryState state={delivery.state} /> {said(delivery, ended)}
            </p>
            <Attempts of={delivery} open />
          </div>
        )}
      </div>
    </>
  )
}

function said(delivery: Delivery, ended: boolean): string {
  switch (delivery.state) {
    case "delivered":
      return "It has arrived."
    case "failed":
      return "No attempt got a 2xx response, and there are no more retries. Look at the responses below, then send another."
    case "no_endpoint":
      return "No URL was registered when the event was due."
    case "parked":
      return "Deliveries are paused, because too many failed or because the operator parked them: see the state of the endpoint above."
    case "pending":
      return ended ? "It is still pending. Look at the delivery log later." : delivery.attempts.length === 0 ? "The first attempt is due." : "The next attempt is due."
  }
}
