// The state of a partner's endpoint, by day and in total.
import { count, group } from "./format"
import type { EndpointDay } from "./types"
import { percent } from "./uptime"

/** A number of attempts; the API stops counting at a limit. */
export const attempts = ({ attempts, atLeast }: Pick<EndpointDay, "attempts" | "atLeast">) => `${group(String(attempts))}${atLeast ? " or more" : ""}`

/** A response time; the API has whole milliseconds. */
export const ms = (value: number) => (value === 0 ? "<1 ms" : `${group(String(value))} ms`)

/** How good a day was: no attempt failed, few did, or more than one in twenty. */
export function howWell({ attempts, failed }: EndpointDay): "good" | "warn" | "bad" {
  return failed === 0 ? "good" : failed <= attempts / 20 ? "warn" : "bad"
}

/** The share of attempts that succeeded, as text; null without an attempt. */
export const succeeded = ({ attempts, failed }: Pick<EndpointDay, "attempts" | "failed">) => (attempts === 0 ? null : percent(attempts - failed, attempts))

export interface Sum {
  attempts: number
  failed: number
  atLeast: boolean
  /** The slowest day, by its median; null without a successful attempt. */
  slowest: EndpointDay | null
}

export function sumOf(days: EndpointDay[]): Sum {
  return days.reduce<Sum>(
    (all, day) => ({
      attempts: all.attempts + day.attempts,
      failed: all.failed + day.failed,
      atLeast: all.atLeast || day.atLeast,
      slowest: day.medianMs !== null && (all.slowest?.medianMs ?? -1) < day.medianMs ? day : all.slowest,
    }),
    { attempts: 0, failed: 0, atLeast: false, slowest: null },
  )
}

/** A day in words. */
export function dayText(day: EndpointDay): string {
  if (day.attempts === 0) return `${day.day}: no attempts`
  return `${day.day}: ${attempts(day)} ${day.attempts === 1 && !day.atLeast ? "attempt" : "attempts"}, ${group(String(day.failed))} failed${day.medianMs === null ? "" : `, median ${ms(day.medianMs)}`}`
}

/** What the bars show, for screen readers. */
export function daysText(days: EndpointDay[]): string {
  const all = sumOf(days)
  const busy = days.filter((day) => day.attempts > 0)
  const span = `${count(days.length, "day")} to ${days.at(-1)?.day ?? "today"}`
  if (busy.length === 0) return `${span}: no attempts.`
  const worst = busy.reduce((low, day) => (day.failed / day.attempts > low.failed / low.attempts ? day : low))
  return `${span}: ${attempts(all)} attempts on ${count(busy.length, "day")}, ${succeeded(all)} succeeded.${worst.failed > 0 ? ` The worst day is ${dayText(worst)}.` : ""}`
}
