// Adds up the events of an explanation again, to check in the browser that a number follows from its events.
import { count } from "./format"
import type { ExplainedEvent, Explanation, Question } from "./types"

export type Verdict =
  /** The answer is about another number than the requested one, or names another operation. */
  | { kind: "astray"; about: Explanation }
  /** Every sum of the page and of the last page follows from the previous one, and the very last sum is the number. */
  | { kind: "proven" }
  /** The page is right, but the last page is not there yet. */
  | { kind: "open" }
  /** A sum that does not follow from the previous one. */
  | { kind: "broken"; event: ExplainedEvent }
  /** The last sum is not the number. */
  | { kind: "other"; sum: string | null }

/** Whether an answer is about the requested number: one about another number may be right in every other respect. */
export function isAbout(page: Explanation, asked: Question): boolean {
  return page.of === asked.of && page.field === asked.field && page.operation === operationOf(asked.field)
}

/**
 * The operation that makes a number from its events. It is derived from the request, not taken from the response, because the
 * operation determines the result.
 */
function operationOf(field: string): Explanation["operation"] {
  if (/count$|^\/(totalDeposits|uniqueUsers|meta\/total)$|\/pendingWithdrawals$/i.test(field)) return "count"
  return /\/(navPerShare|totalAssets|totalSupply|firstSeen)$/.test(field) ? "last" : "sum"
}

/**
 * The kinds of events of the reference contracts that make up a number: according to explain/numbers.go, not to the
 * response.
 */
export function kindsOf(field: string): ExplainedEvent["kind"][] {
  if (/^\/(navPerShare|totalAssets|totalSupply)$/.test(field)) return ["NavUpdated"]
  if (/\/(totalWithdrawn|assetsClaimed)$/.test(field)) return ["WithdrawalClaimed"]
  if (/\/(firstSeen|userCount)$/.test(field)) return ["DepositAccepted", "WithdrawalRequested"]
  return [/withdrawals|^\/meta\/total$/i.test(field) ? "WithdrawalRequested" : "DepositAccepted"]
}

/** The number of a page, and that of the last one. */
export interface At {
  page: number
  last: number
}

/** The sum before the first event. */
const NOTHING = "0"

/** Judges a page, and the number by the last page. */
export function judge(page: Explanation, last: Explanation | null, at: At, asked: Question): Verdict {
  for (const answer of [page, last ?? page]) if (!isAbout(answer, asked)) return { kind: "astray", about: answer }
  const begins = at.page === 1 ? NOTHING : null
  const event = firstWrong(page, begins) ?? (last === null || last === page ? null : firstWrong(last, at.page + 1 === at.last ? (counted(page).at(-1)?.sum ?? begins) : null))
  if (event !== null) return { kind: "broken", event }
  if (last === null) return { kind: "open" }
  const sum = counted(last).at(-1)?.sum ?? null
  const nothing = last.operation === "last" ? null : NOTHING
  // The number shown is that of the page, not of the last one.
  return (sum ?? nothing) === last.value && last.value === page.value ? { kind: "proven" } : { kind: "other", sum }
}

/**
 * The events of a page that have a sum. A retracted event repeats the sum before it; if the last event is the number, it has
 * none.
 */
function counted({ events, operation }: Explanation): ExplainedEvent[] {
  return operation === "last" ? events.filter((event) => event.state === "live") : events
}

/** before: the sum before the page; null if it is unknown, and then the first event of the page is taken as it is. */
function firstWrong(page: Explanation, before: string | null): ExplainedEvent | null {
  for (const event of counted(page)) {
    if (page.operation === "last") {
      if (event.sum !== event.change) return event
    } else if (!isWhole(event.sum) || !isWhole(event.change)) {
      return event
    } else if (event.state === "retracted" && event.change !== "0") {
      return event
    } else if (before !== null && BigInt(before) + BigInt(event.change) !== BigInt(event.sum)) {
      return event
    }
    before = event.sum
  }
  return null
}

function isWhole(text: string): boolean {
  return /^-?\d+$/.test(text)
}

/** Describes which of a number's events were added up here: the browser has the page that is shown, and the last one. */
export function addedUp(total: number, page: Explanation, last: Explanation, at: At): string {
  const [here, there] = [page.events.length, last === page ? 0 : last.events.length]
  if (at.page === 1 && here + there === total) return `${count(total, "event")}, added up again by your browser.`
  const which = last === page ? `the ${here} of this page, which is the last` : `the ${here} of this page and the ${there} of the last`
  return `Of ${count(total, "event")} your browser has added up again ${which}. The sum of the others is what the API says.`
}
