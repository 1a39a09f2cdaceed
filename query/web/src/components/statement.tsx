// A signed statement of a time range, as a file, and how to verify it.
import { useEffect, useState } from "preact/hooks"
import { ApiError } from "../api"
import { group } from "../format"
import { statement } from "../partner"
import { Failed } from "./state"

interface Made {
  from: string
  to: string
  name: string
  bytes: number
  href: string
}

export function Statement() {
  const [span, setSpan] = useState<{ from: string; to: string } | null>(null)
  const [made, setMade] = useState<Made | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  useEffect(() => {
    if (span === null) return
    const left = new AbortController()
    let href: string | null = null
    setMade(null)
    setError(null)
    statement(span, left.signal).then(
      ({ file, name }) => {
        if (left.signal.aborted) return
        href = URL.createObjectURL(file)
        setMade({ ...span, name, bytes: file.size, href })
      },
      (error: unknown) => {
        if (left.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        setError(error.status === 404 ? new ApiError("The operator has configured no key for signing statements.", 404, error.code, null, error.requestId, null) : error)
      },
    )
    return () => {
      left.abort()
      if (href !== null) URL.revokeObjectURL(href)
    }
  }, [span])
  const { from, to } = span ?? { from: "FROM", to: "TO" }
  return (
    <>
      <p>A signed list of all events through you in the time range, in final blocks only, with totals. Times are UTC.</p>
      <form
        class="filters"
        aria-label="Statement"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          setSpan({ from: String(form.get("from")), to: String(form.get("to")) })
        }}
      >
        <label>
          From, included
          <input type="date" name="from" required />
        </label>
        <label>
          To, included
          <input type="date" name="to" required />
        </label>
        <button type="submit" class="button" disabled={span !== null && made === null && error === null}>
          Make the statement
        </button>
      </form>
      <p class="faint">The last day must be over on the chain: its end may not be after the newest final block.</p>
      <div role="status">
        {span !== null && made === null && error === null && <p class="note">Preparing the statement&hellip;</p>}
        {made !== null && (
          <p class="note proven">
            <a href={made.href} download={made.name}>
              Save {made.name}
            </a>
            , {group(String(made.bytes))} bytes, from {made.from} to {made.to}
          </p>
        )}
      </div>
      {error !== null && <Failed error={error} again={false} />}
      <h2>Verify it</h2>
      <p>
        You need not trust anyone for the events: <code>navlog</code> rebuilds the statement from any node of the chain and compares every byte. Only the
        operator can say which vaults exist and from which block each counts; the second command shows both. The first command downloads the same file.
      </p>
      <pre tabIndex={0} aria-label="Commands">
        {`export NAVLOG_API_KEY=nk_live_...
navlog statement get --url ${location.origin} --from ${from} --to ${to} -o ${made?.name ?? "statement.json"}
navlog statement verify ${made?.name ?? "statement.json"} --rpc-file node.txt --url ${location.origin}`}
      </pre>
    </>
  )
}
