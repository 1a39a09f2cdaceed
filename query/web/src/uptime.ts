// The uptime of a program, day by day, as in /status. On a day without a record it is unknown whether the program was
// up.
import { count } from "./format"
import type { Uptime } from "./types"

export interface UptimeDay {
  date: string
  /** The share of the recorded time in which the program was in its role, 0 to 1; null: nothing is recorded. */
  share: number | null
  title: string
}

const DAY = 86_400_000

/** All days of a program; without a record of the program all of them are unknown. */
export function uptimeDays(uptime: Uptime, program: string): UptimeDay[] {
  const of = uptime.programs[program]
  const first = Date.parse(uptime.from)
  const length = Math.round((Date.parse(uptime.to) - first) / DAY) + 1
  return Array.from({ length }, (_, i) => {
    const date = new Date(first + i * DAY).toISOString().slice(0, 10)
    const recorded = of?.recorded[i] ?? null
    if (of === undefined || recorded === null) return { date, share: null, title: `${date}: not recorded` }
    if (recorded === 0) return { date, share: null, title: `${date}: the record has only begun` }
    const running = of.running[i] ?? 0
    const inRole = of.inRole[i] ?? 0
    return { date, share: inRole / recorded, title: `${date}: in its role ${percent(inRole, recorded)}, running ${percent(running, recorded)}` }
  })
}

/** A percentage, cut off and never rounded up: only the whole is 100 %. */
export function percent(part: number, whole: number): string {
  const hundredths = Math.floor((part / whole) * 10_000)
  return `${(Math.min(hundredths, part < whole ? 9_999 : 10_000) / 100).toFixed(part < whole ? 2 : 0)} %`
}

/** The share of all recorded time; null without a record. */
export function uptimeOf(uptime: Uptime, program: string): string | null {
  const of = uptime.programs[program]
  if (of === undefined) return null
  const sum = (days: (number | null)[]) => days.reduce<number>((all, seconds) => all + (seconds ?? 0), 0)
  const recorded = sum(of.recorded)
  return recorded === 0 ? null : percent(sum(of.inRole), recorded)
}

/** What the bars show, in a sentence or two for screen readers. */
export function uptimeText(uptime: Uptime, program: string): string {
  const days = uptimeDays(uptime, program)
  const recorded = days.filter(({ share }) => share !== null)
  const missing = days.length - recorded.length
  const parts = [`${program}, ${count(days.length, "day")} to ${uptime.to}: ${missing === 0 ? "all recorded" : `${recorded.length} recorded, ${missing} not recorded`}.`]
  const all = uptimeOf(uptime, program)
  if (all !== null) parts.push(`In its role ${all} of the recorded time.`)
  const [first, ...rest] = recorded
  if (first === undefined) return parts[0]!
  const lowest = rest.reduce((low, day) => (day.share! < low.share! ? day : low), first)
  if (lowest.share! < 1) parts.push(`The lowest day is ${lowest.title}.`)
  return parts.join(" ")
}
