// `/events`: the log, newest first, by kind, vault, user and transaction. Its newest page follows the log.
import { useLayoutEffect, useRef } from "preact/hooks"
import { useAnswer } from "../answers"
import { Events, Older } from "../components/events"
import { Files } from "../components/files"
import { kindName } from "../components/kinds"
import { Empty, Shown, Waiting, useArrived } from "../components/state"
import { useTitle } from "../components/title"
import { useFollowed } from "../follow"
import { shortHex } from "../format"
import { asOf, go, here, usePlace } from "../router"

const filters = ["kind", "vault", "user", "tx", "from", "to", "retracted"] as const

/** The filters that are typed. */
const typed = ["user", "tx", "from", "to"] as const

/** Events on a page. */
const PAGE = 50

/** A field for a day or, if the address has a time, for that time: a field for days would be empty, and submit that. */
function Moment({ name, given }: { name: string; given: string | null }) {
  return given === null || /^\d{4}-\d{2}-\d{2}$/.test(given) ? <input name={name} type="date" /> : <input name={name} spellcheck={false} type="text" />
}

export function EventsPage() {
  useTitle("Events")
  const place = usePlace()
  const { query } = place
  // The stream only supports these filters, so a page with any other filter is polled like all other pages.
  const value = (name: (typeof filters)[number]) => query.get(name) || null
  const streamed = { kind: value("kind"), vault: value("vault"), user: value("user") }
  const others = { tx: value("tx"), from: value("from"), to: value("to") }
  const retracted = value("retracted") === "true" ? ("true" as const) : null
  const given = { ...streamed, ...others, retracted }
  const before = query.get("before")
  const follows = asOf(place) === null && before === null && Object.values(others).every((value) => value === null)
  const known = useAnswer("/api/v1/vaults", {})
  const vaults = known.answer?.data ?? []
  const kinds = [...new Set(vaults.flatMap((vault) => vault.kinds))]
  const followed = useFollowed(kinds, follows && known.answer !== null ? streamed : null, { retracted, pageSize: PAGE })
  const asked = useAnswer(follows ? null : "/api/v1/events", { query: { ...given, before, pageSize: PAGE } })
  const events = follows ? followed : asked
  // Without their vaults, rows have no amounts, and would grow when the vaults arrive.
  const arrived = useArrived(known, events)
  const filtered = filters.some((name) => query.has(name))
  const listed = vaults.find((vault) => vault.address.toLowerCase() === given.vault?.toLowerCase())
  // The fields follow the address bar without being recreated, so that the one being edited keeps the focus. Typed
  // text is not in the address bar yet, and stays until the address changes.
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => {
    for (const name of typed) {
      const field = form.current?.elements.namedItem(name)
      if (field instanceof HTMLInputElement) field.value = given[name] ?? ""
    }
  }, [query.toString()])
  return (
    <>
      <h1>Events</h1>
      <form
        class="filters"
        role="search"
        aria-label="Filter the events"
        ref={form}
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          go(here(place, { ...Object.fromEntries(filters.map((name) => [name, String(form.get(name) ?? "").trim()])), before: null }))
        }}
        onChange={(event) => (event.target as HTMLElement).matches("select, [type=checkbox]") && event.currentTarget.requestSubmit()}
      >
        <label>
          Kind
          <select name="kind" value={given.kind ?? ""}>
            <option value="">all</option>
            {given.kind !== null && !kinds.includes(given.kind) && <option value={given.kind}>{given.kind.split(",").map(kindName).join(", ")}</option>}
            {kinds.map((kind) => (
              <option key={kind} value={kind}>
                {kindName(kind)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Vault
          <select name="vault" value={listed?.address ?? given.vault ?? ""}>
            <option value="">all</option>
            {given.vault !== null && listed === undefined && <option value={given.vault}>{shortHex(given.vault)}</option>}
            {vaults.map((vault) => (
              <option key={vault.address} value={vault.address}>
                {vault.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          User
          <input name="user" placeholder="0x…" spellcheck={false} autocomplete="off" />
        </label>
        <label>
          Transaction
          <input name="tx" placeholder="0x…" spellcheck={false} autocomplete="off" />
        </label>
        <label>
          From
          <Moment name="from" given={given.from} />
        </label>
        <label>
          To
          <Moment name="to" given={given.to} />
        </label>
        <label class="check">
          <input name="retracted" type="checkbox" value="true" checked={given.retracted === "true"} /> show reorganised events
        </label>
        <button class="button">Filter</button>
        {filtered && <a href={here(place, { ...Object.fromEntries(filters.map((name) => [name, null])), before: null })}>Clear</a>}
      </form>
      {follows && followed.answer !== null && (
        <p class={`follows ${followed.connected ? "on" : ""}`} role="status">
          {followed.connected ? "Live: new events appear here by themselves." : "Connecting to the stream of new events."}
        </p>
      )}
      {!arrived ? (
        <Waiting />
      ) : (
        <Shown asked={events}>
          {(data, meta) =>
            data.length === 0 ? (
              <Empty>{filtered ? "No events match these filters." : "No events yet. They appear here as the vaults emit them."}</Empty>
            ) : (
              <>
                <Events rows={data} vaults={vaults} caption="Events" />
                <Older meta={meta} before={before} />
                <Files path="/api/v1/events" params={{ query: given }} />
              </>
            )
          }
        </Shown>
      )}
    </>
  )
}
