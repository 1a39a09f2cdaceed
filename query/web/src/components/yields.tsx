// The gain of a vault's share between two NAV updates, and its proof: both updates, each with its own proof.
import { type Asked, useAnswer, useSteady } from "../answers"
import { exact, group, short, time } from "../format"
import { AS_OF, asOf, go, here, there, usePlace } from "../router"
import type { Series, Vault } from "../types"
import { Amount, inNav } from "./amount"
import { Drawer } from "./drawer"
import { BlockLink, Time, TxLink } from "./names"
import { Empty, Shown } from "./state"
import { Table } from "./table"

/** The yields of a vault at the page's block. They do not depend on the requested part of the series. */
export function useYields(address: string, newest: string | null): Asked<Series, undefined> {
  const asked = useAnswer(newest === null ? null : "/api/v1/vaults/{address}/series", { path: { address }, query: { interval: "week", from: newest } })
  return useSteady(asked, `${address} ${asOf(usePlace()) ?? ""}`)
}

export type OneYield = Series["yields"][number]

/** The days of a yield, or all since the first NAV. */
export type Over = 7 | 30 | 90 | "first"

export function yieldOver(series: Series | null, over: Over): OneYield | null {
  if (series === null) return null
  return over === "first" ? series.sinceFirst : (series.yields.find(({ days }) => days === over) ?? null)
}

/** "1.23 %", rounded down so that a gain is never overstated. */
export function percentText(percent: string): string {
  const millionths = BigInt(percent.replace(".", ""))
  const down = millionths / 10_000n - (millionths < 0n && millionths % 10_000n !== 0n ? 1n : 0n)
  return `${millionths > 0n && down === 0n ? "<0.01" : short(String(down), 2, 2)}\u2009%`
}

interface Props {
  vault: Pick<Vault, "address">
  series: Series | null
  over: Over
  /** Shows the gain of a year at this rate. */
  annual?: boolean
}

export function Yield({ vault, series, over, annual = false }: Props) {
  const place = usePlace()
  const found = yieldOver(series, over)
  const percent = found === null ? null : annual ? found.annualPercent : found.percent
  if (found === null || percent === null) return <span class="faint" title={series === null ? undefined : over === "first" ? "There is less than a day between the first NAV and the newest block" : `There was no NAV ${over} days before`}>&ndash;</span>
  const { from, to } = found
  const title = `${percent} %\nfrom ${exact(from.navPerShare, 18)} at block ${from.blockNumber}, ${time(from.timestamp)} UTC\nto ${exact(to.navPerShare, 18)} at block ${to.blockNumber}, ${time(to.timestamp)} UTC\nShow the two updates`
  return (
    <a class="number yield" href={here(place, { yield: over, of: vault.address })} title={title}>
      {percentText(percent)}
    </a>
  )
}

/** The drawer with the two updates of a yield. */
export function YieldProof({ vaults }: { vaults: Vault[] }) {
  const place = usePlace()
  const over = place.query.get("yield")
  const vault = vaults.find(({ address }) => address.toLowerCase() === place.query.get("of")?.toLowerCase())
  if (over === null || vault === undefined || place.query.get("explain") !== null) return null
  const wanted: Over | undefined = ([7, 30, 90, "first"] as const).find((one) => String(one) === over)
  return wanted === undefined ? null : <TwoUpdates key={`${vault.address} ${over}`} vault={vault} over={wanted} />
}

const NothingToCompare = () => <Empty>There is no NAV to compare with.</Empty>

function TwoUpdates({ vault, over }: { vault: Vault; over: Over }) {
  const place = usePlace()
  const close = () => go(here(place, { yield: null, of: null }))
  const asked = useYields(vault.address, vault.navUpdatedAt)
  const path = `/vault/${vault.address}`
  return (
    <Drawer id="yield" title={`Yield of ${vault.name} ${over === "first" ? "since its first NAV" : `over ${over} days`}`} close={close}>
      {vault.navUpdatedAt === null ? (
        <NothingToCompare />
      ) : (
        <Shown asked={asked}>
          {(series) => {
            const found = yieldOver(series, over)
            if (found === null) return <NothingToCompare />
            const rows = [
              { what: "First", nav: found.from },
              { what: "Last", nav: found.to },
            ]
            return (
              <>
                <p class="value">{found.percent} %</p>
                <p>
                  ({exact(found.to.navPerShare, 18)} &minus; {exact(found.from.navPerShare, 18)}) / {exact(found.from.navPerShare, 18)}
                  {found.annualPercent !== null && <>, which is {percentText(found.annualPercent)} for a year at the same rate, without compounding</>}.
                </p>
                <Table
                  caption="The two NAV updates"
                  rows={rows}
                  id={({ what }) => what}
                  columns={[
                    { title: "Update", cell: ({ what }) => what },
                    { title: "NAV per share", number: true, cell: ({ nav }) => <Amount value={nav.navPerShare} unit={inNav} /> },
                    { title: "Block", number: true, cell: ({ nav }) => <BlockLink number={nav.blockNumber} /> },
                    { title: "Time, UTC", cell: ({ nav }) => <Time iso={nav.timestamp} /> },
                    { title: "Transaction", cell: ({ nav }) => <TxLink hash={nav.txHash} /> },
                    {
                      title: "Proof",
                      cell: ({ nav }) => (
                        <a href={there(place, path, { [AS_OF]: nav.blockNumber, explain: `/api/v1/vaults/${vault.address}`, field: "/navPerShare" })} title={`Its proof, as of block ${group(nav.blockNumber)}`}>
                          Verify
                        </a>
                      ),
                    },
                  ]}
                />
                {asOf(place) !== null && <p class="faint">As of block {group(asOf(place)!)}.</p>}
              </>
            )
          }}
        </Shown>
      )}
    </Drawer>
  )
}
