// Adds up again what the API explains: whether a number is what its events make of it is found out here, and not believed.
import type { ExplainedEvent, Explanation, Question } from "./types"

export type Verdict =
  /** The answer is about another number than the one that was asked about. */
  | { kind: "astray"; about: Question }
  /** Every sum of the page follows from the one before, and the last of all is the number. */
  | { kind: "proven" }
  /** The page is right, and the last page is not there yet. */
  | { kind: "open" }
  /** A sum that does not follow from the one before. */
  | { kind: "broken"; event: ExplainedEvent }
  /** The last sum is not the number. */
  | { kind: "other"; sum: string | null }

/** Whether an answer is about the number that was asked about: one about another number may be true in all else. */
export function isAbout(page: Explanation, asked: Question): boolean {
  return page.of === asked.of && page.field === asked.field
}

/** Judges a page, and the number by the last page. first: whether the page is the first one, and so begins with nothing. */
export function judge(page: Explanation, last: Explanation | null, first: boolean, asked: Question): Verdict {
  for (const answer of [page, last ?? page]) if (!isAbout(answer, asked)) return { kind: "astray", about: answer }
  const event = firstWrong(page, first) ?? (last === null || last === page ? null : firstWrong(last, false))
  if (event !== null) return { kind: "broken", event }
  if (last === null) return { kind: "open" }
  const sum = live(last).at(-1)?.sum ?? null
  const nothing = last.operation === "last" ? null : "0"
  return (sum ?? nothing) === last.value ? { kind: "proven" } : { kind: "other", sum }
}

function live({ events }: Explanation): ExplainedEvent[] {
  return events.filter((event) => event.state === "live")
}

function firstWrong(page: Explanation, first: boolean): ExplainedEvent | null {
  let before: string | null = first ? "0" : null
  for (const event of live(page)) {
    if (page.operation === "last") {
      if (event.sum !== event.change) return event
    } else if (!isWhole(event.sum) || !isWhole(event.change)) {
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
