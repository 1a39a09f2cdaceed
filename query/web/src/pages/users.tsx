// `/users`: everybody who has ever had something to do with a vault.
import { useAnswer } from "../answers"
import { Amount } from "../components/amount"
import { Files } from "../components/files"
import { Time, UserLink } from "../components/names"
import { inTotal } from "../components/proof"
import { Empty, Shown } from "../components/state"
import { Pages, Table, pageOf } from "../components/table"
import { usePlace } from "../router"
import type { Meta, User, Vault } from "../types"

const orders = ["firstSeen", "totalDeposited", "totalWithdrawn"]

export function UsersPage() {
  const { query } = usePlace()
  const by = orders.find((order) => order === query.get("sortBy")) ?? "firstSeen"
  const order = query.get("sortOrder") === "asc" ? "asc" : "desc"
  const users = useAnswer<User[], Meta>("/api/v1/users", { sortBy: by, sortOrder: order, page: pageOf(query, "page"), pageSize: 50 })
  const vaults = useAnswer<Vault[]>("/api/v1/vaults")
  const unit = inTotal(vaults.answer?.data ?? [])
  return (
    <>
      <h1>Users</h1>
      <Shown asked={users}>
        {(data, meta) =>
          meta.total === 0 ? (
            <Empty>Nobody has deposited yet. A user is here from the first deposit or withdrawal request on.</Empty>
          ) : (
            <>
              <Table<User>
                caption="Users"
                rows={data}
                id={(user) => user.address}
                sorted={{ by, order }}
                columns={[
                  { title: "User", cell: (user) => <UserLink address={user.address} /> },
                  { title: "First seen, UTC", sort: "firstSeen", cell: (user) => <Time iso={user.firstSeen} /> },
                  { title: `Deposited, ${unit.symbol}`, sort: "totalDeposited", number: true, cell: (user) => <Amount value={user.totalDeposited} unit={unit} source={{ of: `/api/v1/users/${user.address}`, field: "/totalDeposited" }} /> },
                  { title: `Withdrawn, ${unit.symbol}`, sort: "totalWithdrawn", number: true, cell: (user) => <Amount value={user.totalWithdrawn} unit={unit} source={{ of: `/api/v1/users/${user.address}`, field: "/totalWithdrawn" }} /> },
                ]}
              />
              <Pages meta={meta} parameter="page" what="user" />
              <Files path="/api/v1/users" query={{ sortOrder: by === "firstSeen" ? order : null }} />
            </>
          )
        }
      </Shown>
    </>
  )
}
