// Adds up again what the API explains: whether a number is what its events make of it is found out here, and not believed.
import { count } from "./format"
import type { ExplainedEvent, Explanation, Question } from "./types"

export type Verdict =
  /** The answer is about another number than the one that was asked about, or says that it is made otherwise. */
  | { kind: "astray"; about: Explanation }
  /** Every sum of the page and of the last one follows from the one before, and the last of all is the number. */
  | { kind: "proven" }
  /** The page is right, and the last page is not there yet. */
  | { kind: "open" }
  /** A sum that does not follow from the one before. */
  | { kind: "broken"; event: ExplainedEvent }
  /** The last sum is not the number. */
  | { kind: "other"; sum: string | null }

/** Whether an answer is about the number that was asked about: one about another number may be true in all else. */
export function isAbout(page: Explanation, asked: Question): boolean {
  return page.of === asked.of && page.field === asked.field && page.operation === operationOf(asked.field)
}

/** How its events make a number. It follows from what is asked: who may choose it chooses what they come to. */
function operationOf(field: string): Explanation["operation"] {
  if (/count$|^\/(totalDeposits|uniqueUsers|meta\/total)$|\/pendingWithdrawals$/i.test(field)) return "count"
  return /\/(navPerShare|totalAssets|totalSupply|firstSeen)$/.test(field) ? "last" : "sum"
}

/** Which events make a number: as explain/numbers.go has it, and not as the answer says. */
export function kindsOf(field: string): ExplainedEvent["kind"][] {
  if (/^\/(navPerShare|totalAssets|totalSupply)$/.test(field)) return ["NavUpdated"]
  if (/\/(totalWithdrawn|assetsClaimed)$/.test(field)) return ["WithdrawalClaimed"]
  if (/\/(firstSeen|userCount)$/.test(field)) return ["DepositAccepted", "WithdrawalRequested"]
  return [/withdrawals|^\/meta\/total$/i.test(field) ? "WithdrawalRequested" : "DepositAccepted"]
}

/** Where a page is: which one it is, and which one is the last. */
export interface At {
  page: number
  last: number
}

/** What a number begins with. */
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
  // The number that is shown is that of the page.
  return (sum ?? nothing) === last.value && last.value === page.value ? { kind: "proven" } : { kind: "other", sum }
}

/** The events of a page that have a sum: one that was taken back has that of before, and says nothing where the last one is the number. */
function counted({ events, operation }: Explanation): ExplainedEvent[] {
  return operation === "last" ? events.filter((event) => event.state === "live") : events
}

/** before: the sum before the page; null where it is not known, and the page is taken from its first event on. */
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

/** Says which of the events of a number were added up here: the browser has the page that is looked at, and the last one. */
export function addedUp(total: number, page: Explanation, last: Explanation, at: At): string {
  const [here, there] = [page.events.length, last === page ? 0 : last.events.length]
  if (at.page === 1 && here + there === total) return `${count(total, "event")}, added up again by your browser.`
  const which = last === page ? `the ${here} of this page, which is the last` : `the ${here} of this page and the ${there} of the last`
  return `Of ${count(total, "event")} your browser has added up again ${which}. The sum of the others is what the API says.`
}
