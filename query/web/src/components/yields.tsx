// What a share of a vault gained over one, seven and thirty days, between two NAV updates that the title names.
import { useAnswer } from "../answers"
import { exact, short, time } from "../format"
import type { Series } from "../types"

/** The yields of a vault as of the page's block. They are the same whatever part of the series is asked for. */
export function useYields(address: string, newest: string | null): Series["yields"] | null {
  return useAnswer(newest === null ? null : "/api/v1/vaults/{address}/series", { path: { address }, query: { interval: "week", from: newest } }).answer?.data.yields ?? null
}

export function Yield({ yields, days }: { yields: Series["yields"] | null; days: 1 | 7 | 30 }) {
  const found = yields?.find((candidate) => candidate.days === days)
  if (found === undefined) return <span class="faint" title={yields === null ? undefined : `There was no NAV ${days} days before`}>&ndash;</span>
  const { from, to, percent } = found
  const title = `${percent} %\nfrom ${exact(from.navPerShare, 18)} at block ${from.blockNumber}, ${time(from.timestamp)} UTC\nto ${exact(to.navPerShare, 18)} at block ${to.blockNumber}, ${time(to.timestamp)} UTC\n= ${found.numerator} / ${found.denominator}`
  return (
    <span class="amount" title={title}>
      {short(percent.replace(".", ""), 6, 2)}&thinsp;%
    </span>
  )
}
