// The certificates for a partner's webhook URL: what they are for everyone, and their change where the operator allows it.
import { useState } from "preact/hooks"
import { ApiError } from "../api"
import { lacks, texts } from "../certificates"
import { removeCertificates, setCertificates, usePartner } from "../partner"
import type { Certificates as All, URLCertificates } from "../types"
import { Confirmed } from "./confirmed"
import { Time } from "./names"
import { useSending } from "./sending"
import { Empty, Failed, Shown } from "./state"
import { Table } from "./table"

export function Certificates({ registered, changeable }: { registered: string | null; changeable: boolean }) {
  const [again, setAgain] = useState(0)
  const look = () => setAgain((n) => n + 1)
  const asked = usePartner("/api/v1/partner/webhooks/certificates", {}, `${again} ${registered}`)
  return (
    <>
      <h2>Certificates</h2>
      <Shown asked={asked}>
        {({ certificates }) => (
          <>
            {certificates.length === 0 && <Empty>There are none: public authorities are trusted, and no client certificate is sent.</Empty>}
            {certificates.map((one) => (
              <OfURL key={one.url} of={one} changeable={changeable} done={look} />
            ))}
          </>
        )}
      </Shown>
      {changeable && <SetCertificates done={look} />}
    </>
  )
}

function OfURL({ of, changeable, done }: { of: URLCertificates; changeable: boolean; done: () => void }) {
  const { url, used, authorities, client } = of
  const all = [...authorities.map((one) => ({ ...one, use: "authority" })), ...client.map((one, i) => ({ ...one, use: i === 0 ? "client" : "intermediate" }))]
  return (
    <div class="certificates">
      <p>
        <span class={`badge ${used ? "good" : "warn"}`}>{used ? "In use" : "Not in use: webhooks go to another URL"}</span> <code class="long">{url}</code>
      </p>
      <Table
        caption={`Certificates for ${url}`}
        rows={all}
        id={(one) => `${one.use} ${one.sha256}`}
        columns={[
          { title: "Use", cell: (one) => one.use },
          { title: "Subject", long: true, cell: (one) => one.subject },
          { title: "Issuer", long: true, cell: (one) => one.issuer },
          { title: "Valid from, UTC", cell: (one) => <Time iso={one.notBefore} /> },
          { title: "Valid until, UTC", cell: (one) => <Time iso={one.notAfter} /> },
          { title: "SHA-256", long: true, cell: (one) => <code class="long">{one.sha256}</code> },
        ]}
      />
      {changeable && authorities.length > 0 && <Remove url={url} only="authorities" title="Remove the authorities" done={done} />}
      {changeable && client.length > 0 && <Remove url={url} only="client" title="Remove the client certificate" done={done} />}
    </div>
  )
}

const afterwards = {
  authorities: "Public authorities are trusted for this URL then. If its certificate is signed by a private one, webhooks fail.",
  client: "No client certificate is sent to this URL then. If it demands one, webhooks fail.",
}

function Remove({ url, only, title, done }: { url: string; only: "authorities" | "client"; title: string; done: () => void }) {
  const { busy, error, send, forget } = useSending<All>()
  return (
    <>
      <Confirmed title={title} warning={afterwards[only]} busy={busy} opened={forget} act={() => send(removeCertificates({ url, only }), done)} />
      {error !== null && <Failed error={error} again={false} />}
    </>
  )
}

/** Files, and not fields of text: the private key is not shown, and is gone from the page once it was sent. */
function SetCertificates({ done }: { done: () => void }) {
  const { busy, error, data, send, forget } = useSending<All>()
  const [lack, setLack] = useState<string | null>(null)
  const submit = (form: HTMLFormElement) => {
    const file = (field: string) => form.querySelector<HTMLInputElement>(`input[data-field=${field}]`)?.files?.[0]
    const chosen = { authorities: file("authorities"), certificate: file("certificate"), key: file("key") }
    const url = form.querySelector<HTMLInputElement>("input[type=url]")?.value.trim() ?? ""
    const lack = lacks(chosen)
    forget()
    setLack(lack)
    if (lack !== null) return
    send(
      texts(chosen).then(
        (pem) => setCertificates(url === "" ? pem : { ...pem, url }),
        () => Promise.reject(new ApiError("A file cannot be read: choose it again.", 0, "", null, null, null)),
      ),
      () => (form.reset(), done()),
    )
  }
  return (
    <section aria-label="Set certificates">
      <p>
        If your receiver&rsquo;s certificate is signed by a private authority, or if it demands a client certificate, set them here. What you choose
        replaces what is stored for the URL, and the rest stays.
      </p>
      <form class="filters" aria-label="Set certificates" autocomplete="off" onSubmit={(event) => (event.preventDefault(), submit(event.currentTarget))}>
        <label class="wide">
          Authorities, PEM
          <input type="file" data-field="authorities" />
        </label>
        <label class="wide">
          Client certificate with its intermediates, PEM
          <input type="file" data-field="certificate" />
        </label>
        <label class="wide">
          Private key of the client certificate, PEM, not encrypted
          <input type="file" data-field="key" />
        </label>
        <label class="wide">
          For another URL, before you change to it; otherwise leave it empty
          <input type="url" maxLength={2048} autocomplete="off" spellcheck={false} placeholder="https://partner.example/webhooks" />
        </label>
        <button type="submit" class="button" disabled={busy}>
          Set the certificates
        </button>
      </form>
      {lack !== null && (
        <p class="note failed" role="alert">
          {lack}
        </p>
      )}
      {error !== null && <Failed error={error} again={false} />}
      <div role="status">{data !== null && <p class="note proven">They are stored. Attempts that begin a second from now use those of the registered URL.</p>}</div>
    </section>
  )
}
