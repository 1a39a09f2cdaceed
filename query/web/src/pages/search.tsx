// `/search?q=`: what a number or a name may refer to.
import { useExact, useStatus } from "../answers"
import { stage } from "../components/lists"
import { isNumber, shown } from "../components/search"
import { Empty, Shown, Waiting, useArrived } from "../components/state"
import { useTitle } from "../components/title"
import { group } from "../format"
import { AS_OF, there, usePlace } from "../router"
import type { Vault } from "../types"

export function SearchPage() {
  const place = usePlace()
  const text = place.query.get("q") ?? ""
  useTitle(`Search ${text}`)
  const vaults = useExact("/api/v1/vaults", {})
  const { status } = useStatus()
  const arrived = useArrived(vaults)
  const newest = status?.indexedBlock ?? null
  return (
    <>
      <h1>Search: {shown(text)}</h1>
      {!arrived ? (
        <Waiting />
      ) : (
        <Shown asked={vaults}>
          {(all) => {
            const named = all.filter(({ name, symbol }) => `${name} ${symbol}`.toLowerCase().includes(text.toLowerCase()))
            if (!isNumber(text) && (named.length === 0 || text === "")) return <Empty>Nothing matches. Search for an address, the hash of a transaction, a block number, the number of a withdrawal request, the id of an event, or the name of a vault.</Empty>
            return (
              <ul class="hits">
                {isNumber(text) && (
                  <li>{newest !== null && BigInt(text) > BigInt(newest) ? `Block ${group(text)} is not indexed yet: the newest is ${group(newest)}.` : <a href={there(place, "/", { [AS_OF]: text })}>The vaults as of block {group(text)}</a>}</li>
                )}
                {isNumber(text) ? all.map((vault) => <Request key={vault.address} vault={vault} index={text} />) : named.map((vault) => <li key={vault.address}><a href={there(place, `/vault/${vault.address}`)}>{vault.name}</a></li>)}
              </ul>
            )
          }}
        </Shown>
      )}
    </>
  )
}

/**
 * A withdrawal request by its number, if the vault has it. A vault numbers its requests consecutively, and lists the newest
 * first.
 */
function Request({ vault, index }: { vault: Vault; index: string }) {
  const place = usePlace()
  const of = { path: { address: vault.address } }
  const newest = useExact("/api/v1/vaults/{address}/withdrawals", { ...of, query: { pageSize: 1 } })
  const highest = newest.answer?.data[0]?.requestIndex ?? null
  const back = highest === null ? null : BigInt(highest) - BigInt(index)
  const page = back === null || back < 0n || back >= 100_000n ? null : Number(back) + 1
  const found = useExact(page === null ? null : "/api/v1/vaults/{address}/withdrawals", { ...of, query: { page: page ?? 1, pageSize: 1 } })
  const request = found.answer?.data.find(({ requestIndex }) => requestIndex === index)
  if (request === undefined) return null
  return (
    <li>
      <a href={there(place, `/tx/${request.txHash}`)}>
        Withdrawal request {index} of {vault.name}
      </a>{" "}
      <span class="faint">{stage(request)}</span>
    </li>
  )
}
