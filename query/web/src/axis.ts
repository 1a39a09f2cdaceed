// The labels and ranges of a chart's axes. A label is exact: it has as many digits as its tick needs.

const UNITS: [size: number, suffix: string][] = [
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "K"],
  [1, ""],
]

/** Maximum number of decimals of a label: a NAV has 18, and a float has about 15 significant digits. */
const MOST_DIGITS = 12

/** The labels of a numeric axis: all with the same unit and number of decimals, so that they are easy to compare. */
export function numberLabels(ticks: number[]): string[] {
  const largest = Math.max(0, ...ticks.map(Math.abs))
  const step = Math.min(...ticks.slice(1).map((tick, i) => Math.abs(tick - ticks[i]!)).filter((gap) => gap > 0), largest || 1)
  const [size, suffix] = UNITS.find(([size]) => largest >= size) ?? [1, ""]
  let digits = 0
  // A tick is a float: a difference of less than a millionth of a step is a rounding error.
  while (digits < MOST_DIGITS && ticks.some((tick) => Math.abs(Number((tick / size).toFixed(digits)) * size - tick) > step * 1e-6)) digits++
  return ticks.map((tick) => {
    const text = (tick / size).toFixed(digits)
    return Number(text) === 0 ? "0" : text + suffix
  })
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const MONTH = 30 * DAY
const YEAR = 365 * DAY
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/**
 * The distances between labels of times, in seconds; uPlot makes 30 days a month, and 365 days a year, of the calendar. None is
 * more than two and a half times the one before: with a greater one, as from a minute to five in uPlot's own list, the only
 * label of a narrow chart can be beyond its end.
 */
export const TIMES = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 4, 6, 8, 12].map((n) => n * HOUR),
  ...[1, 2, 3, 5, 7, 10, 15].map((n) => n * DAY),
  ...[1, 2, 3, 4, 6].map((n) => n * MONTH),
  ...[1, 2, 5, 10, 25, 50, 100].map((n) => n * YEAR),
]

/**
 * The labels of a time axis in UTC, with ticks step seconds apart: the time of day if they are less than a day apart, and the
 * day below it when it changes.
 */
export function timeLabels(ticks: number[], step: number): string[] {
  return ticks.map((tick, i) => {
    const at = new Date(tick * 1000)
    const before = i === 0 ? null : new Date(ticks[i - 1]! * 1000)
    const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`
    const year = at.getUTCFullYear()
    const sameYear = before?.getUTCFullYear() === year
    if (step >= DAY) return sameYear ? day : `${day}\n${year}`
    const time = at.toISOString().slice(11, step >= 60 ? 16 : 19)
    const sameDay = before !== null && before.toISOString().slice(0, 10) === at.toISOString().slice(0, 10)
    return sameDay ? time : `${time}\n${day}${before === null ? ` ${year}` : ""}`
  })
}

/** The range of an axis for bars, which begin at zero: the highest bar almost fills it, however small it is. */
export function barRange(low: number | null, high: number | null, whole: boolean): [number, number] {
  const [bottom, top] = [Math.min(low ?? 0, 0), Math.max(high ?? 0, 0)]
  const least = whole || (bottom === 0 && top === 0) ? 1 : 0
  return [bottom * 1.08, Math.max(top, least) * 1.08]
}
