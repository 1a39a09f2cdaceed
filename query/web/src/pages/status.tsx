// `/status`: how the programs are, in words.
import { useStatus } from "../answers"
import { Age, VaultLink } from "../components/names"
import { Table } from "../components/table"

const tasks: Record<string, string> = {
  ingest: "reads the chain into the log",
  project: "makes the read models from the log",
  serve: "answers the API and these pages",
  dispatch: "sends webhooks to partners",
}

/** The states of programs that do their work, and those that do not end by themselves or serve nobody. Others are waited in. */
const good = new Set(["following", "building", "backfilling", "reading", "serving"])
const bad = new Set(["frozen", "fenced", "bad", "unready", "unknown"])

/** How a program is in a state, as a badge shows it. */
export function howIs(state: string): "good" | "warn" | "bad" {
  return good.has(state) ? "good" : bad.has(state) ? "bad" : "warn"
}

export function StatusPage() {
  const { status } = useStatus()
  return (
    <>
      <h1>Status</h1>
      {status !== null && (
        <>
          <h2>Programs</h2>
          <Table
            caption="Programs"
            rows={Object.entries(status.programs)}
            id={([name]) => name}
            columns={[
              { title: "Program", cell: ([name]) => <code>navlog {name}</code> },
              { title: "What it does", cell: ([name]) => tasks[name] ?? "" },
              { title: "State", cell: ([, state]) => <span class={`badge ${howIs(state)}`}>{state === "unknown" ? "has said nothing for 5 s" : state}</span> },
            ]}
          />
          <h2>Vaults</h2>
          <Table
            caption="Vaults"
            rows={status.vaults}
            id={(vault) => vault.address}
            columns={[
              { title: "Vault", cell: (vault) => <VaultLink address={vault.address} name={vault.name} /> },
              { title: "State", cell: (vault) => <span class={`badge ${vault.state === "served" ? "good" : "warn"}`}>{vault.state}</span> },
              { title: "Newest NAV", cell: (vault) => <Age iso={vault.lastNavAt} /> },
            ]}
          />
        </>
      )}
    </>
  )
}
