// The proof drawer: the events that make up a number, with running sums. The browser adds up the events that it has,
// names them, and reports whether the result is the number. On request it verifies each event from the hash of its
// block.
import { useEffect, useMemo, useState } from "preact/hooks"
import { useExact, useStatus } from "../answers"
import { count, group } from "../format"
import { keyOf } from "../follow"
import { oneAsset } from "../assets"
import { asOf, go, here, usePlace } from "../router"
import { type At, addedUp, judge } from "../sums"
import type { ExplainedEvent, Explanation, Question, Vault } from "../types"
import { type Finding, verify } from "../verify"
import { Amount, type Unit, inAsset, inNav, inNumber, inShares } from "./amount"
import { Drawer } from "./drawer"
import { kindName } from "./kinds"
import { BlockLink, Hex, Time, TxLink, UserLink } from "./names"
import { Empty, Shown } from "./state"
import { type Column, Pages, Table, pageOf } from "./table"

export function Proof({ vaults }: { vaults: Vault[] }) {
  const place = usePlace()
  const of = place.query.get("explain")
  const field = place.query.get("field")
  if (of === null || field === null) return null
  return <OfNumber key={`${of}#${field}`} of={of} field={field} vaults={vaults} />
}

function OfNumber({ of, field, vaults }: { of: string; field: string; vaults: Vault[] }) {
  const place = usePlace()
  const close = () => go(here(place, { explain: null, field: null, explainPage: null, retracted: null, verify: null }))

  const retracted = place.query.get("retracted") === "true"
  const page = pageOf(place.query, "explainPage")
  // All pages of a proof are about one block: the newest one when the proof was opened.
  const { status } = useStatus()
  const [opened, setOpened] = useState(status?.indexedBlock ?? null)
  useEffect(() => setOpened((block) => block ?? status?.indexedBlock ?? null), [status])
  const block = asOf(place) ?? opened
  const proven = sizeOfProven(place.query.get("verify"))
  const size = proven ?? PAGE
  const question = { of, field, asOfBlock: block, pageSize: size, retracted: retracted ? ("true" as const) : null }
  const asked = useExact(block === null ? null : "/api/v1/explain", { query: { ...question, page, proof: proven === null ? null : "true" } })
  const last = asked.answer?.meta.totalPages ?? 0
  // The number is the sum on the last page, whichever page is shown.
  const elsewhere = last > 0 && page !== last
  const end = useExact(elsewhere ? "/api/v1/explain" : null, { query: { ...question, page: last } })
  const unit = unitOf(of, field, vaults)
  const asks = useMemo(() => ({ of, field }), [of, field])
  // The page that contains the first event of this one, for another page size.
  const atSize = (other: number) => Math.floor(((page - 1) * size) / other) + 1
  const verifying = (other: number | null) => here(place, { verify: other, explainPage: atSize(other ?? PAGE) === 1 ? null : atSize(other ?? PAGE) })
  return (
    <Drawer id="proof" title={<>Where <code>{field.slice(1).replaceAll("/", ".")}</code> comes from</>} close={close}>
      <p class="faint path">
        of <code>{of}</code>
        {block !== null && <>, as of block {group(block)}{asOf(place) === null && ", the newest when this was opened"}</>}
      </p>
      <p class="choices">
        {proven === null ? (
          <a class="button" href={verifying(PROVEN)}>
            Verify
          </a>
        ) : (
          <a href={verifying(null)}>Leave the proofs out</a>
        )}
        {proven !== null && proven > 1 && asked.error?.faults.some((fault) => fault.field === "pageSize") && <a href={verifying(1)}>Verify one event at a time</a>}
        <a href={here(place, { retracted: retracted ? null : "true", explainPage: null })}>{retracted ? "Hide retracted events" : "Show retracted events"}</a>
      </p>
      <Shown asked={asked}>
        {(data, meta) => (
          <>
            <p class="value">
              <Explained value={data.value} unit={unit} symbol />
            </p>
            <Said page={data} last={elsewhere ? (end.answer?.data ?? null) : data} at={{ page, last }} asked={asks} total={meta.total} />
            {data.events.length === 0 ? <Empty>No event has changed this number yet.</Empty> : <Listed data={data} asked={asks} asOfBlock={block ?? "0"} proven={proven !== null} unit={unit} vaults={vaults} />}
            <Pages meta={meta} parameter="explainPage" what="event" />
          </>
        )}
      </Shown>
    </Drawer>
  )
}

/** Events on a page, and on one with proofs, which is the maximum of the API. */
const PAGE = 50
const PROVEN = 20

/** How many events a page has that are to be verified, according to the address bar; null: none are. */
function sizeOfProven(text: string | null): number | null {
  const size = Number(text ?? "")
  return Number.isInteger(size) && size >= 1 && size <= PROVEN ? size : null
}

interface ListedProps {
  data: Explanation
  asked: Question
  asOfBlock: string
  proven: boolean
  unit: Unit
  vaults: Vault[]
}

function Listed({ data, asked, asOfBlock, proven, unit, vaults }: ListedProps) {
  const findings = useMemo(() => (proven ? verify(data, asked, asOfBlock) : []), [data, asked, asOfBlock, proven])
  const found = new Map(data.events.map((event, i) => [event, findings[i]]))
  const columns: Column<ExplainedEvent>[] = [
    { title: "Block", number: true, cell: (event) => <BlockLink number={event.blockNumber} /> },
    { title: "Time, UTC", cell: (event) => <Time iso={event.timestamp} /> },
    { title: "Event", cell: (event) => <>{kindName(event.kind)}{event.state !== "live" && <span class="badge bad after" title={`Retracted by seq ${event.retractedBySeq}`}>reorganised away</span>}</> },
    { title: "Vault", cell: (event) => vaults.find((vault) => vault.address === event.vaultAddress)?.symbol ?? <Hex value={event.vaultAddress} what="vault" /> },
    { title: "User", cell: (event) => (event.userAddress === null ? <span class="faint">&ndash;</span> : <UserLink address={event.userAddress} />) },
    { title: data.operation === "last" ? "Value" : "Change", number: true, cell: (event) => <Explained value={event.change} unit={unit} /> },
    { title: data.operation === "last" ? "Until then" : "Sum", number: true, cell: (event) => <Explained value={event.sum} unit={unit} /> },
    { title: "Transaction", cell: (event) => <TxLink hash={event.txHash} /> },
    { title: "Log", number: true, cell: (event) => event.logIndex ?? <span class="faint">&ndash;</span> },
    { title: "Seq", number: true, cell: (event) => group(event.seq) },
  ]
  if (proven) columns.unshift({ title: "Proof", cell: (event) => <Found finding={found.get(event)} /> })
  return (
    <>
      {proven && <Verified findings={findings} />}
      <Table<ExplainedEvent> caption="Events" rows={data.events} id={keyOf} mark={(event) => (event.state === "live" ? undefined : "retracted")} columns={columns} />
    </>
  )
}

/** The result for one event. */
function Found({ finding }: { finding: Finding | undefined }) {
  switch (finding?.kind) {
    case "verified":
      return (
        <>
          <span class="badge good">verified</span> in block <Hex value={finding.blockHash} what="block hash" />
        </>
      )
    case "refuted":
    case "unproven":
      return (
        <div class="why">
          <span class={`badge ${finding.kind === "refuted" ? "bad" : "warn"}`}>not verified</span> {finding.why}
        </div>
      )
  }
  return null
}

/** The combined result for the events of the page, and what the visitor has to check. */
function Verified({ findings }: { findings: Finding[] }) {
  const of = (kind: Finding["kind"]) => findings.filter((finding) => finding.kind === kind).length
  const [verified, refuted] = [of("verified"), of("refuted")]
  if (refuted > 0) return <p class="note failed" role="alert">Of {count(refuted, "event")} of this page the proof does not hold: it is said beside each. Please report this, with the link of this page.</p>
  if (verified === 0) return <p class="note warned" role="status">No event on this page is verified. The reason is shown next to each event.</p>
  return (
    <p class="note proven" role="status">
      <strong>{verified === findings.length ? "Every event of this page is verified." : `Of ${count(findings.length, "event")} of this page ${verified} ${verified === 1 ? "is" : "are"} verified.`}</strong> Your browser
      has found each log in the block whose hash is next to it: compare it with a block explorer that you trust. The hash of the transaction is in no proof.
    </p>
  )
}

/** A number with all its digits, or a time if the number is one. */
function Explained({ value, unit, symbol = false }: { value: string | null; unit: Unit; symbol?: boolean }) {
  if (value !== null && !/^-?\d+$/.test(value)) return <Time iso={value} />
  return <Amount value={value} unit={{ ...unit, digits: unit.decimals }} symbol={symbol} />
}

interface SaidProps {
  page: Explanation
  /** null while it is loading. */
  last: Explanation | null
  at: At
  asked: Question
  total: number
}

/** Shows the result of the browser's own sum. */
function Said({ page, last, at, asked, total }: SaidProps) {
  const verdict = judge(page, last, at, asked)
  switch (verdict.kind) {
    case "astray":
      return <p class="note failed" role="alert">The response is about {verdict.about.field} of {verdict.about.of} as a {verdict.about.operation}, not about the requested number. Please report this, with the link of this page.</p>
    case "open":
      return <p class="note">Loading the last page&hellip;</p>
    case "broken":
      return <p class="note failed" role="alert">The sums do not add up at seq {verdict.event.seq}: with {verdict.event.change} more it should not be {verdict.event.sum}. Please report this, with the link of this page.</p>
    case "other":
      return <p class="note failed" role="alert">The last sum is {verdict.sum ?? "nothing"}, which is not the number. Please report this, with the link of this page.</p>
    case "proven":
      return (
        <p class="note proven" role="status">
          <strong>{total === 0 ? "There are no events, so the number is its initial value." : page.operation === "last" ? "The last event is the number." : "The last sum is the number."}</strong> {addedUp(total, page, last ?? page, at)}
        </p>
      )
  }
}

/** The unit of a number in an answer. Its vault is named in the path or in the pointer. */
export function unitOf(of: string, field: string, vaults: Vault[]): Unit {
  const name = field.split("/").at(-1) ?? ""
  if (/count|pending|total$|unique/i.test(name) && !/assets/i.test(name) || name === "totalDeposits") return inNumber
  if (name === "navPerShare") return inNav
  const within = `${of} ${field}`.toLowerCase()
  const vault = vaults.find((candidate) => within.includes(candidate.address.toLowerCase()))
  if (name === "totalSupply" && vault) return inShares(vault)
  return vault ? inAsset(vault.asset) : inTotal(vaults)
}

/**
 * The unit of totals over all vaults: their asset if it is the same for all, otherwise native units, which are not an amount
 * of anything.
 */
function inTotal(vaults: Vault[]): Unit {
  const first = vaults[0]
  return first === undefined || !oneAsset(vaults) ? { ...inNumber, symbol: "native units of different assets" } : inAsset(first.asset)
}
