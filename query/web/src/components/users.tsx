// Users of all vaults or of one, in one of the orders of the API, which is in the address bar.
import type { ComponentChildren } from "preact"
import type { Asked } from "../answers"
import { usePlace } from "../router"
import type { Meta, User, VaultUser } from "../types"
import { Amount, type Source, type Unit } from "./amount"
import { Time, UserLink } from "./names"
import { Empty, Shown } from "./state"
import { Pages, Table, pageOf } from "./table"

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
  /** The text for an empty list. */
  nobody: string
}

export function Users({ asked, unit, source, files, nobody }: Props) {
  const { sortBy: by, sortOrder: order } = useOrder()
  return (
    <Shown asked={asked}>
      {(data, meta) =>
        meta.total === 0 ? (
          <Empty>{nobody}</Empty>
        ) : (
          <>
            <Table<User | VaultUser>
              caption="Users"
              rows={data}
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
            <Pages meta={meta} parameter="page" what="user" />
            {files}
          </>
        )
      }
    </Shown>
  )
}
