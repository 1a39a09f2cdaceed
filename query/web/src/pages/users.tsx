// `/users`: all users. Amounts of different assets cannot be added: if the vaults hold several, each vault has a list
// of its own.
import { useAnswer } from "../answers"
import { oneAsset } from "../assets"
import { inAsset } from "../components/amount"
import { Files } from "../components/files"
import { Waiting, useArrived } from "../components/state"
import { useTitle } from "../components/title"
import { Users, UsersOf, useOrder } from "../components/users"
import { here, usePlace } from "../router"
import type { Vault } from "../types"

export function UsersPage() {
  useTitle("Users")
  const place = usePlace()
  const vaults = useAnswer("/api/v1/vaults", {})
  const arrived = useArrived(vaults)
  const all = vaults.answer?.data ?? []
  const chosen = all.find(({ address }) => address === place.query.get("vault"))
  return (
    <>
      <h1>Users</h1>
      {!arrived ? (
        <Waiting />
      ) : (
        <>
          {!oneAsset(all) && (
            <nav class="ranges" aria-label="Users of">
              <a href={here(place, { vault: null, page: null, sortBy: null, sortOrder: null })} aria-current={chosen === undefined ? "true" : undefined}>
                All vaults
              </a>
              {all.map((vault) => (
                <a key={vault.address} href={here(place, { vault: vault.address, page: null })} aria-current={vault === chosen ? "true" : undefined}>
                  {vault.name}
                </a>
              ))}
            </nav>
          )}
          {chosen === undefined ? <OfAll vaults={all} /> : <UsersOf key={chosen.address} vault={chosen} />}
        </>
      )}
    </>
  )
}

function OfAll({ vaults }: { vaults: Vault[] }) {
  const order = useOrder()
  const asset = oneAsset(vaults) ? vaults[0]?.asset : undefined
  const query = asset === undefined ? { ...order, sortBy: "firstSeen" as const } : order
  const users = useAnswer("/api/v1/users", { query })
  return (
    <>
      {asset === undefined && vaults.length > 0 && <p class="note">The vaults hold different assets, whose amounts do not add up. Choose a vault to see amounts and to sort by them.</p>}
      <Users
        asked={users}
        // The totals of the file cover all vaults, and are not amounts if the vaults hold different assets.
        files={asset === undefined ? null : <Files path="/api/v1/users" params={{ query: { sortBy: query.sortBy, sortOrder: query.sortOrder } }} />}
        unit={asset === undefined ? null : inAsset(asset)}
        source={(address, field) => ({ of: `/api/v1/users/${address}`, field: `/${field}` })}
      />
    </>
  )
}
