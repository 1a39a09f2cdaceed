// `/status`: how far the index is, the state of the programs, and recent problems.
import { useExact, useStatus } from "../answers"
import { DayBars } from "../components/days"
import { Figure, Figures } from "../components/figures"
import { Age, BlockLink, VaultLink } from "../components/names"
import { Empty, Shown, Waiting } from "../components/state"
import { Table } from "../components/table"
import { useTitle } from "../components/title"
import { count, duration, group } from "../format"
import { uptimeDays, uptimeOf, uptimeText } from "../uptime"

const tasks: Record<string, string> = {
  ingest: "reads the chain into the log",
  project: "builds the read models from the log",
  serve: "serves the API and these pages",
  dispatch: "sends webhooks to partners",
}

/**
 * The states of programs that do their work, and those that do not recover by themselves or in which nothing is served. All
 * others are temporary.
 */
const good = new Set(["following", "building", "backfilling", "reading", "serving"])
const bad = new Set(["frozen", "fenced", "bad", "unready", "unknown"])

/** How good a state is, for its badge. */
export function howIs(state: string): "good" | "warn" | "bad" {
  return good.has(state) ? "good" : bad.has(state) ? "bad" : "warn"
}

/** How good a day was: the program was missing for less than 86 s, less than 72 min, or longer. */
function howMuch(share: number | null): "good" | "warn" | "bad" {
  return share === null || share >= 0.999 ? "good" : share >= 0.95 ? "warn" : "bad"
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
      <h2>Uptime</h2>
      {status.uptime === null ? (
        <Empty>Nothing is recorded yet. The programs record how long they are in their role, by day.</Empty>
      ) : (
        <>
          <Table
            caption="Uptime"
            rows={Object.keys(status.programs)}
            id={(name) => name}
            columns={[
              { title: "Program", cell: (name) => <code>navlog {name}</code> },
              { title: `${status.uptime.from} to ${status.uptime.to}`, cell: (name) => <DayBars days={uptimeDays(status.uptime!, name).map((day) => ({ ...day, how: howMuch(day.share) }))} text={uptimeText(status.uptime!, name)} /> },
              { title: "In its role", number: true, cell: (name) => uptimeOf(status.uptime!, name) ?? <span class="faint">not recorded</span> },
            ]}
          />
          <p class="faint">
            A bar is a day (UTC), as high as the part of it in which the program was in its role. A thin line is a day of which nothing is recorded.
          </p>
        </>
      )}
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

/** How many reorganisations are listed, the newest ones. */
const SHOWN = 50
