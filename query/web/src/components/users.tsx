// Users of all vaults or of one, in one of the orders of the API, which is in the address bar.
import type { ComponentChildren } from "preact"
import { type Asked, useAnswer } from "../answers"
import { usePlace } from "../router"
import type { Meta, User, Vault, VaultUser } from "../types"
import { Amount, type Source, type Unit, inAsset } from "./amount"
import { Files } from "./files"
import { Time, UserLink } from "./names"
import { Paged, Table, pageOf } from "./table"

const orders = ["firstSeen", "totalDeposited", "totalWithdrawn"] as const

/** The order and the page in the address bar, as parameters of the API. */
export function useOrder() {
  const { query } = usePlace()
  const sortBy = orders.find((order) => order === query.get("sortBy")) ?? "firstSeen"
  const sortOrder = query.get("sortOrder") === "asc" ? ("asc" as const) : ("desc" as const)
  return { sortBy, sortOrder, page: pageOf(query, "page"), pageSize: 50 }
}

interface Props {
  /** The users, in the order in the address bar. */
  asked: Asked<(User | VaultUser)[], Meta>
  /** The unit of the amounts; null if the vaults hold different assets, so that there is no single amount. */
  unit: Unit | null
  /** Where a number of a user is explained. */
  source: (address: string, field: string) => Source
  /** The list as a file. */
  files: ComponentChildren
}

export function Users({ asked, unit, source, files }: Props) {
  const { sortBy: by, sortOrder: order } = useOrder()
  return (
    <Paged asked={asked} empty="No users yet. A user is listed after the first deposit or withdrawal request." parameter="page" what="user" below={files}>
      {(rows) => (
        <Table<User | VaultUser>
          caption="Users"
          rows={rows}
          id={(user) => user.address}
          sorted={{ by, order }}
          columns={[
            { title: "User", cell: (user) => <UserLink address={user.address} /> },
            { title: "First seen, UTC", sort: "firstSeen", cell: (user) => <Time iso={user.firstSeen} /> },
            ...(unit === null
              ? []
              : [
                  { title: `Total deposited, ${unit.symbol}`, sort: "totalDeposited", number: true, cell: (user: User | VaultUser) => <Amount value={user.totalDeposited} unit={unit} source={source(user.address, "totalDeposited")} /> },
                  { title: `Total withdrawn, ${unit.symbol}`, sort: "totalWithdrawn", number: true, cell: (user: User | VaultUser) => <Amount value={user.totalWithdrawn} unit={unit} source={source(user.address, "totalWithdrawn")} /> },
                ]),
          ]}
        />
      )}
    </Paged>
  )
}

/** The users of one vault. */
export function UsersOf({ vault }: { vault: Pick<Vault, "address" | "asset"> }) {
  const query = useOrder()
  const of = { path: { address: vault.address } }
  return (
    <Users
      asked={useAnswer("/api/v1/vaults/{address}/users", { ...of, query })}
      files={<Files path="/api/v1/vaults/{address}/users" params={{ ...of, query: { sortBy: query.sortBy, sortOrder: query.sortOrder } }} />}
      unit={inAsset(vault.asset)}
      source={(address, field) => ({ of: `/api/v1/vaults/${vault.address}/users`, field: `/${address}/${field}` })}
    />
  )
}
