// Users in one of the orders of the API, which the address bar names: of all vaults, or of one.
import { useAnswer } from "../answers"
import { usePlace } from "../router"
import type { Meta, User, VaultUser } from "../types"
import { Amount, type Source, type Unit } from "./amount"
import { Files } from "./files"
import { Time, UserLink } from "./names"
import { Empty, Shown } from "./state"
import { Pages, Table, pageOf } from "./table"

const orders = ["firstSeen", "totalDeposited", "totalWithdrawn"]

interface Props {
  /** The list in the API. */
  path: string
  unit: Unit
  /** Where a number of a user is explained. */
  source: (address: string, field: string) => Source
  /** What is said where there is nobody. */
  nobody: string
}

export function Users({ path, unit, source, nobody }: Props) {
  const { query } = usePlace()
  const by = orders.find((order) => order === query.get("sortBy")) ?? "firstSeen"
  const order = query.get("sortOrder") === "asc" ? "asc" : "desc"
  const users = useAnswer<(User | VaultUser)[], Meta>(path, { sortBy: by, sortOrder: order, page: pageOf(query, "page"), pageSize: 50 })
  return (
    <Shown asked={users}>
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
                { title: `Deposited, ${unit.symbol}`, sort: "totalDeposited", number: true, cell: (user) => <Amount value={user.totalDeposited} unit={unit} source={source(user.address, "totalDeposited")} /> },
                { title: `Withdrawn, ${unit.symbol}`, sort: "totalWithdrawn", number: true, cell: (user) => <Amount value={user.totalWithdrawn} unit={unit} source={source(user.address, "totalWithdrawn")} /> },
              ]}
            />
            <Pages meta={meta} parameter="page" what="user" />
            <Files path={path} query={{ sortBy: by, sortOrder: order }} />
          </>
        )
      }
    </Shown>
  )
}
