// Formats of values. Amounts are integers in native units, as decimal strings: they are cut and grouped as text and
// as BigInt, never converted to a float. Shortened values are cut off, never rounded up, so that no amount is
// overstated.

/** A native amount with all its digits, grouped: ("1234567890", 6) is "1,234.56789". */
export function exact(native: string, decimals: number): string {
  const [whole, fraction] = split(native, decimals)
  const kept = fraction.replace(/0+$/, "")
  return kept === "" ? group(whole) : `${group(whole)}.${kept}`
}

/** A native amount with all its digits and without grouping, for files. */
export function plain(native: string, decimals: number): string {
  return exact(native, decimals).replaceAll(",", "")
}

/** A native amount cut to a number of decimals: ("1234567890", 6, 2) is "1,234.56". An amount too small to show is "<0.01". */
export function short(native: string, decimals: number, digits: number): string {
  const [whole, fraction] = split(native, decimals)
  const kept = fraction.slice(0, digits)
  if (/^-?0$/.test(whole) && /^0*$/.test(kept) && /[1-9]/.test(fraction)) {
    const least = digits === 0 ? "1" : `0.${"0".repeat(digits - 1)}1`
    return whole.startsWith("-") ? `>-${least}` : `<${least}`
  }
  return kept === "" ? group(whole) : `${group(whole)}.${kept}`
}

/** The parts before and after the decimal point. */
function split(native: string, decimals: number): [whole: string, fraction: string] {
  const negative = native.startsWith("-")
  const digits = (negative ? native.slice(1) : native).padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  return [(negative ? "-" : "") + whole, digits.slice(digits.length - decimals)]
}

/** Groups the digits of a whole number by three. */
export function group(whole: string): string {
  return whole.replace(/\B(?=(\d{3})+$)/g, ",")
}

/** The native amount as a float, only for the height of a bar in a chart. */
export function scaled(native: string, decimals: number): number {
  return Number(native) / 10 ** decimals
}

/** b - a of two native amounts, with its sign. */
export function difference(a: string, b: string): string {
  return String(BigInt(b) - BigInt(a))
}

/** The sum of native amounts. */
export function sum(amounts: string[]): string {
  return String(amounts.reduce((all, one) => all + BigInt(one), 0n))
}

/** "0x1234…cdef" */
export function shortHex(hex: string): string {
  return hex.length <= 13 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`
}

/** "2026-03-01 12:00:00" of an ISO time, in UTC. */
export function time(iso: string): string {
  return iso.slice(0, 19).replace("T", " ")
}

const units: [name: string, seconds: number][] = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
]

/** A duration in its one or two largest units: "3 d 4 h", "12 s". */
export function duration(seconds: number): string {
  let left = Math.max(0, Math.floor(seconds))
  const parts: string[] = []
  for (const [index, [name, size]] of units.entries()) {
    const n = Math.floor(left / size)
    left -= n * size
    if (n > 0) parts.push(`${n} ${name}`)
    else if (parts.length > 0) break
    if (parts.length === 2 || (parts.length === 1 && index >= 2)) break
  }
  return parts.length === 0 ? "0 s" : parts.join(" ")
}

/** How long ago an ISO time was, in seconds; never less than 0, because clocks differ. */
export function ageSeconds(iso: string, now: number): number {
  return Math.max(0, Math.floor((now - Date.parse(iso)) / 1000))
}

/** "1 request", "2 requests" */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${group(String(n))} ${n === 1 ? one : many}`
}
