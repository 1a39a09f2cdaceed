// `/users`: everybody who has ever had something to do with a vault.
import { useAnswer } from "../answers"
import { Files } from "../components/files"
import { inTotal } from "../components/proof"
import { Users, useOrder } from "../components/users"

export function UsersPage() {
  const vaults = useAnswer("/api/v1/vaults", {})
  const query = useOrder()
  const users = useAnswer("/api/v1/users", { query })
  return (
    <>
      <h1>Users</h1>
      <Users
        asked={users}
        files={<Files path="/api/v1/users" params={{ query: { sortBy: query.sortBy, sortOrder: query.sortOrder } }} />}
        unit={inTotal(vaults.answer?.data ?? [])}
        source={(address, field) => ({ of: `/api/v1/users/${address}`, field: `/${field}` })}
        nobody="Nobody has deposited yet. A user is here from the first deposit or withdrawal request on."
      />
    </>
  )
}
