// `/partner`: what a partner sees of navlog with an API key.
import type { ComponentType } from "preact"
import { useRef } from "preact/hooks"
import { useAnswer } from "../answers"
import { Amount, inAsset, inNumber } from "../components/amount"
import { Figure, Figures } from "../components/figures"
import { Deposits } from "../components/lists"
import { VaultLink } from "../components/names"
import { inTotal } from "../components/proof"
import { VerifySignature } from "../components/signature"
import { Empty, Failed, Shown } from "../components/state"
import { Statement } from "../components/statement"
import { Pages, Table, pageOf } from "../components/table"
import { FirstWebhook, Webhooks } from "../components/webhook"
import { forgetTheKey, giveKey, useKey, usePartner } from "../partner"
import { asOf, here, usePlace } from "../router"

interface View {
  name: string
  text: string
  view: ComponentType
  /** Whether it asks nothing that needs the key. */
  open?: true
  /** Whether it can be of a past block. */
  past?: true
}

const views: View[] = [
  { name: "numbers", text: "Statistics", view: Numbers, past: true },
  { name: "webhooks", text: "Webhooks", view: Webhooks },
  { name: "first", text: "The first webhook in five minutes", view: FirstWebhook },
  { name: "statement", text: "Statement", view: Statement },
  { name: "verify", text: "Verify a signature", view: VerifyView, open: true },
]

export function PartnerPage() {
  const place = usePlace()
  const { key } = useKey()
  const { name, view: Shows, open, past } = views.find((view) => view.name === place.query.get("view")) ?? views[0]!
  return (
    <>
      <h1>Partner</h1>
      <Key />
      <nav class="tabs" aria-label="Of this partner">
        {views.map((other) => (
          <a key={other.name} href={here(place, { view: other === views[0] ? null : other.name, page: null, deliveries: null, state: null })} aria-current={other.name === name ? "true" : undefined}>
            {other.text}
          </a>
        ))}
      </nav>
      <div key={`${name} ${key}`} class="view">
        {asOf(place) !== null && !past && <p class="note warned">This view is of now, whatever block is chosen above.</p>}
        {key !== 0 || open ? <Shows /> : <Empty>This needs the key.</Empty>}
      </div>
    </>
  )
}

/** What had the focus is gone with what was pressed: who uses a keyboard goes on at the page, not at the top of the window. */
function toMain() {
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true })
}

function Key() {
  const { key, refused } = useKey()
  const field = useRef<HTMLInputElement>(null)
  if (key !== 0) {
    return (
      <p>
        A key is in use, for as long as this page is open.{" "}
        <button type="button" class="button" onClick={() => (forgetTheKey(), toMain())}>
          Forget the key
        </button>
      </p>
    )
  }
  return (
    <>
      {refused !== null && <Failed error={refused} />}
      <form
        class="filters"
        aria-label="API key"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault()
          const text = field.current?.value.trim() ?? ""
          if (field.current !== null) field.current.value = ""
          if (text === "") return
          giveKey(text)
          toMain()
        }}
      >
        {/* Without a name the field is part of no address, and without a value nobody reads it out of the page. */}
        <label class="wide">
          API key
          <input ref={field} type="password" required autocomplete="off" spellcheck={false} placeholder="nk_live_…" maxLength={200} pattern="\s*[\x21-\x7e]+\s*" title="letters, digits and underscores, without spaces" />
        </label>
        <button type="submit" class="button">
          Use the key
        </button>
      </form>
      <p class="faint">It stays in the memory of this page: it is not stored, and gone with the page. The operator of this navlog gives keys.</p>
    </>
  )
}

function Numbers() {
  const place = usePlace()
  const block = asOf(place)
  const vaults = useAnswer("/api/v1/vaults", {}).answer?.data ?? []
  const stats = usePartner("/api/v1/partner/stats", { query: { asOfBlock: block } }, 0)
  const deposits = usePartner("/api/v1/partner/deposits", { query: { asOfBlock: block, page: pageOf(place.query, "page"), pageSize: 20 } }, 0)
  const vaultOf = (address: string) => vaults.find((vault) => vault.address === address)
  return (
    <>
      <Shown asked={stats}>
        {(data) => (
          <>
            <h2>
              {data.partnerName} <span class="faint">partner {data.partnerId}</span>
            </h2>
            <Figures>
              <Figure title="Deposited through you"><Amount value={data.totalVolume} unit={inTotal(vaults)} symbol /></Figure>
              <Figure title="Deposits"><Amount value={data.totalDeposits} unit={inNumber} /></Figure>
              <Figure title="Users"><Amount value={data.uniqueUsers} unit={inNumber} /></Figure>
            </Figures>
            {data.byVault.length > 0 && (
              <Table
                caption="By vault"
                rows={data.byVault}
                id={(row) => row.vaultAddress}
                columns={[
                  { title: "Vault", cell: ({ vaultAddress }) => <VaultLink address={vaultAddress} name={vaultOf(vaultAddress)?.name ?? vaultAddress} /> },
                  { title: "Deposits", number: true, cell: ({ depositCount }) => <Amount value={depositCount} unit={inNumber} /> },
                  {
                    title: "Deposited",
                    number: true,
                    cell: ({ vaultAddress, totalVolume }) => {
                      const vault = vaultOf(vaultAddress)
                      return vault === undefined ? null : <Amount value={totalVolume} unit={inAsset(vault.asset)} symbol />
                    },
                  },
                ]}
              />
            )}
          </>
        )}
      </Shown>
      <h2>Deposits</h2>
      <Shown asked={deposits}>
        {(data, meta) =>
          meta.total === 0 ? (
            <Empty>Nobody has deposited through you{block !== null && " up to this block"}.</Empty>
          ) : (
            <>
              <Deposits rows={data} vaults={vaults} of="user" />
              <Pages meta={meta} parameter="page" what="deposit" />
            </>
          )
        }
      </Shown>
    </>
  )
}

function VerifyView() {
  return (
    <>
      <p>
        Whether a webhook was signed with your secret. All of it is computed in this page: neither the secret nor the body is sent anywhere.
      </p>
      <VerifySignature />
    </>
  )
}
