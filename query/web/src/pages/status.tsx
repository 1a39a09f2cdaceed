// `/status`: how far the index is, how the programs are, and what went wrong lately.
import { useExact, useStatus } from "../answers"
import { Figure, Figures } from "../components/figures"
import { Age, BlockLink, VaultLink } from "../components/names"
import { Empty, Shown, Waiting } from "../components/state"
import { Table } from "../components/table"
import { useTitle } from "../components/title"
import { count, duration, group } from "../format"

const tasks: Record<string, string> = {
  ingest: "reads the chain into the log",
  project: "builds the read models from the log",
  serve: "serves the API and these pages",
  dispatch: "sends webhooks to partners",
}

/** The states of programs that do their work, and those that do not end by themselves or serve nobody. Others are waited in. */
const good = new Set(["following", "building", "backfilling", "reading", "serving"])
const bad = new Set(["frozen", "fenced", "bad", "unready", "unknown"])

/** How a program is in a state, as a badge shows it. */
export function howIs(state: string): "good" | "warn" | "bad" {
  return good.has(state) ? "good" : bad.has(state) ? "bad" : "warn"
}

const chain: Record<string, [text: string, kind: string]> = {
  following: ["Following the chain", "good"],
  backfilling: ["Catching up with the chain", "warn"],
  frozen: ["Frozen", "bad"],
  unknown: ["A program does not report", "bad"],
  stalled: ["The read model does not advance", "bad"],
}

export function StatusPage() {
  useTitle("Status")
  const { status } = useStatus()
  const reorganisations = useExact("/api/v1/reorganisations", { query: { width: "1" } })
  if (status === null || (reorganisations.answer === null && reorganisations.error === null)) return <><h1>Status</h1><Waiting /></>
  const [text, kind] = chain[status.chainState] ?? [status.chainState, "warn"]
  const block = (number: string | null) => (number === null ? <span class="faint">&ndash;</span> : group(number))
  return (
    <>
      <h1>
        Status <span class={`badge ${kind}`}>{text}</span>
      </h1>
      {status.frozenReason !== null && <p class="note failed" role="alert">{status.frozenReason}</p>}
      {status.chainReason !== null && <p class="note warned">{status.chainReason}</p>}
      <Figures>
        <Figure title="Indexed block">{block(status.indexedBlock)}</Figure>
        <Figure title="Head of the chain">{block(status.headBlock)}</Figure>
        <Figure title="Final block">{block(status.finalBlock)}</Figure>
        <Figure title="Logs proven up to">{block(status.provenTo)}</Figure>
        <Figure wide title="Lag">{status.lagBlocks === null ? <span class="faint">&ndash;</span> : <>{count(status.lagBlocks, "block")}{status.lagSeconds ? `, ${duration(status.lagSeconds)}` : ""}</>}</Figure>
        <Figure title="Time of the block"><Age iso={status.indexedAt} /></Figure>
        <Figure title="Generation">{status.generation ?? <span class="faint">&ndash;</span>}</Figure>
      </Figures>
      <h2>Programs</h2>
      <Table
        caption="Programs"
        rows={Object.entries(status.programs)}
        id={([name]) => name}
        columns={[
          { title: "Program", cell: ([name]) => <code>navlog {name}</code> },
          { title: "Task", cell: ([name]) => tasks[name] ?? "" },
          { title: "State", cell: ([, state]) => <span class={`badge ${howIs(state)}`}>{state === "unknown" ? "no report for 5 s" : state}</span> },
        ]}
      />
      <h2>Vaults</h2>
      <Table
        caption="Vaults"
        rows={status.vaults}
        id={(vault) => vault.address}
        columns={[
          { title: "Vault", cell: (vault) => <VaultLink address={vault.address} name={vault.name} /> },
          { title: "State", cell: (vault) => <><span class={`badge ${vault.state === "served" ? "good" : "warn"}`}>{vault.state}</span>{vault.warnings.map((warning) => <span key={warning} class="badge warn after">{warning}</span>)}</> },
          { title: "Newest NAV", cell: (vault) => <Age iso={vault.lastNavAt} /> },
        ]}
      />
      <h2>Nodes</h2>
      <Table
        caption="Nodes"
        rows={status.endpoints.map((endpoint, i) => ({ ...endpoint, name: `Node ${i + 1}` }))}
        id={({ name }) => name}
        columns={[
          { title: "Node", cell: ({ name }) => name },
          { title: "Calls since the start", number: true, cell: ({ calls }) => group(String(calls)) },
          { title: "Units of the provider", number: true, cell: ({ units }) => group(String(units)) },
        ]}
      />
      <h2>Reorganisations of more than one block</h2>
      <Shown asked={reorganisations}>
        {(data) => {
          const deep = data.filter(({ fromBlock, toBlock }) => fromBlock !== toBlock)
          if (deep.length === 0) return <Empty>None was recorded.</Empty>
          return (
            <Table
              caption="Reorganisations"
              rows={deep.slice(0, SHOWN)}
              id={({ seq }) => seq}
              columns={[
                { title: "From block", number: true, cell: ({ fromBlock }) => <BlockLink number={fromBlock} /> },
                { title: "To block", number: true, cell: ({ toBlock }) => group(toBlock) },
                { title: "Blocks", number: true, cell: ({ fromBlock, toBlock }) => group(String(BigInt(toBlock) - BigInt(fromBlock) + 1n)) },
                { title: "Logs retracted", number: true, cell: ({ logs }) => group(String(logs)) },
              ]}
            />
          )
        }}
      </Shown>
    </>
  )
}

/** How many reorganisations are listed, the newest. */
const SHOWN = 50
