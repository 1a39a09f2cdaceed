// `/partner`: the view of a partner with an API key.
import type { ComponentType } from "preact"
import { useAnswer } from "../answers"
import { Amount, inAsset, inNumber } from "../components/amount"
import { Figure, Figures } from "../components/figures"
import { Deposits, amountIn } from "../components/lists"
import { Key } from "../components/key"
import { VaultLink } from "../components/names"
import { VerifySignature } from "../components/signature"
import { Empty, Shown } from "../components/state"
import { Statement } from "../components/statement"
import { Paged, Table, pageOf } from "../components/table"
import { FirstWebhook, Webhooks } from "../components/webhook"
import { useTitle } from "../components/title"
import { byAsset } from "../assets"
import { useKey, usePartner } from "../partner"
import { asOf, here, usePlace } from "../router"

interface View {
  name: string
  text: string
  view: ComponentType
  /** Whether it works without the key. */
  open?: true
  /** Whether it can show a past block. */
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
  useTitle("Partner")
  const place = usePlace()
  const { key } = useKey()
  const { name, view: Shows, open, past } = views.find((view) => view.name === place.query.get("view")) ?? views[0]!
  return (
    <>
      <h1>Partner</h1>
      <Key />
      <nav class="tabs" aria-label="Of this partner">
        {views.map((other) => (
          <a key={other.name} href={here(place, { view: other === views[0] ? null : other.name, page: null, deliveries: null, state: null, type: null, tx: null, from: null, to: null })} aria-current={other.name === name ? "true" : undefined}>
            {other.text}
          </a>
        ))}
      </nav>
      <div key={`${name} ${key}`} class="view">
        {asOf(place) !== null && !past && <p class="note warned">This view always shows the newest state, whatever block is chosen above.</p>}
        {key !== 0 || open ? <Shows /> : <Empty>Enter your API key to see this.</Empty>}
      </div>
    </>
  )
}

function Numbers() {
  const place = usePlace()
  const block = asOf(place)
  const vaults = useAnswer("/api/v1/vaults", {}).answer?.data ?? []
  const stats = usePartner("/api/v1/partner/stats", { query: { asOfBlock: block } }, 0)
  const deposits = usePartner("/api/v1/partner/deposits", { query: { asOfBlock: block, page: pageOf(place.query, "page"), pageSize: 20 } }, 0)
  return (
    <>
      <Shown asked={stats}>
        {(data) => (
          <>
            <h2>
              {data.partnerName} <span class="faint">partner {data.partnerId}</span>
            </h2>
            <Figures>
              {byAsset(vaults, ({ address }) => volumeOf(data.byVault, address)).map(({ asset, sums }) => (
                <Figure key={asset.address} wide title={`Total deposited through you, ${asset.symbol}`}><Amount value={sums.volume} unit={inAsset(asset)} symbol /></Figure>
              ))}
              <Figure title="Deposits"><Amount value={data.totalDeposits} unit={inNumber} /></Figure>
              <Figure title="Users"><Amount value={data.uniqueUsers} unit={inNumber} /></Figure>
            </Figures>
            {data.byVault.length > 0 && (
              <Table
                caption="By vault"
                rows={data.byVault}
                id={(row) => row.vaultAddress}
                columns={[
                  { title: "Vault", cell: ({ vaultAddress }) => <VaultLink address={vaultAddress} name={vaults.find(({ address }) => address === vaultAddress)?.name ?? vaultAddress} /> },
                  { title: "Deposits", number: true, cell: ({ depositCount }) => <Amount value={depositCount} unit={inNumber} /> },
                  { title: "Total deposited", number: true, cell: ({ vaultAddress, totalVolume }) => amountIn(vaults, vaultAddress, totalVolume) },
                ]}
              />
            )}
          </>
        )}
      </Shown>
      <h2>Deposits</h2>
      <Paged asked={deposits} empty={`No deposits through you${block === null ? "" : " up to this block"}.`} parameter="page" what="deposit">
        {(rows) => <Deposits rows={rows} vaults={vaults} of="user" />}
      </Paged>
    </>
  )
}

function volumeOf(byVault: { vaultAddress: string; totalVolume: string }[], address: string) {
  const of = byVault.find(({ vaultAddress }) => vaultAddress === address)
  return of === undefined ? null : { volume: of.totalVolume }
}

function VerifyView() {
  return (
    <>
      <p>
        Check whether a webhook was signed with your secret. The page computes everything itself: neither the secret nor the body is sent anywhere.
      </p>
      <VerifySignature />
    </>
  )
}
