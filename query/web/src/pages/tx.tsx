// `/tx/HASH`: the events of a transaction, including those that a reorganisation retracted.
import { useExact } from "../answers"
import { Copy } from "../components/amount"
import { Events } from "../components/events"
import { Figure, Figures } from "../components/figures"
import { BlockLink, Outside, Time, UserLink } from "../components/names"
import { Empty, Shown, Waiting, useArrived } from "../components/state"
import { useTitle } from "../components/title"
import { count, shortHex } from "../format"

export function TransactionPage({ address: hash }: { address: string }) {
  useTitle(`Transaction ${shortHex(hash)}`)
  const vaults = useExact("/api/v1/vaults", {})
  const events = useExact("/api/v1/events", { query: { tx: hash, retracted: "true", pageSize: 100 } })
  const arrived = useArrived(vaults, events)
  return (
    <>
      <h1>
        Transaction <code class="address">{hash}</code>
        <Copy text={hash} what="the hash" />
        <Outside kind="tx" value={hash} />
      </h1>
      {!arrived ? (
        <Waiting />
      ) : (
        <Shown asked={events}>
          {(data) => {
            const live = data.filter(({ state }) => state === "live")
            const [one] = live.length > 0 ? live : data
            if (one === undefined) return <Empty>No vault emitted an event in this transaction. A transaction is listed once its block is indexed.</Empty>
            const users = [...new Set(live.map(({ userAddress }) => userAddress).filter((user) => user !== null))]
            return (
              <>
                <Figures>
                  <Figure title="State">{live.length > 0 ? <span class="badge good">in the chain</span> : <span class="badge bad">reorganised away</span>}</Figure>
                  <Figure title="Block"><BlockLink number={one.blockNumber} /></Figure>
                  <Figure wide title="Time, UTC"><Time iso={one.timestamp} /></Figure>
                  <Figure title="Events">{count(live.length, "event")}</Figure>
                  {users.length === 1 && <Figure wide title="User"><UserLink address={users[0]!} /></Figure>}
                </Figures>
                <Events rows={data} vaults={vaults.answer?.data ?? []} caption="Events of the transaction" />
              </>
            )
          }}
        </Shown>
      )}
    </>
  )
}
