// `/users`: everybody who has ever had something to do with a vault.
import { useAnswer } from "../answers"
import { inTotal } from "../components/proof"
import { Users } from "../components/users"
import type { Vault } from "../types"

export function UsersPage() {
  const vaults = useAnswer<Vault[]>("/api/v1/vaults")
  return (
    <>
      <h1>Users</h1>
      <Users
        path="/api/v1/users"
        unit={inTotal(vaults.answer?.data ?? [])}
        source={(address, field) => ({ of: `/api/v1/users/${address}`, field: `/${field}` })}
        nobody="Nobody has deposited yet. A user is here from the first deposit or withdrawal request on."
      />
    </>
  )
}
