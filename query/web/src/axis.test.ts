import assert from "node:assert/strict"
import { test } from "node:test"
import { barRange, numberLabels, timeLabels, TIMES } from "./axis"

const UNITS: Record<string, number> = { "": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 }

/** The value that a reader understands from a label. */
function parsed(label: string): number {
  const [, number, suffix] = /^(-?[\d.]+)([KMBT]?)$/.exec(label) ?? assert.fail(label)
  return Number(number) * UNITS[suffix!]!
}

test("a label is the value of its tick, whatever the step", () => {
  for (const base of [1, 2, 2.5, 5]) {
    for (let exponent = -9; exponent <= 13; exponent++) {
      for (const start of [-3, 0, 1, 7, 400]) {
        const step = base * 10 ** exponent
        const ticks = Array.from({ length: 5 }, (_, i) => (start + i) * step)
        const labels = numberLabels(ticks)
        for (const [i, tick] of ticks.entries()) assert.ok(Math.abs(parsed(labels[i]!) - tick) <= step * 1e-5, `${tick} is labelled ${labels[i]} (${labels.join(" ")})`)
        assert.equal(new Set(labels).size, labels.length, labels.join(" "))
      }
    }
  }
})

test("steps of 2.5 are shown exactly, even in thousands and around a large number", () => {
  assert.deepEqual(numberLabels([5, 7.5, 10, 12.5]), ["5.0", "7.5", "10.0", "12.5"])
  assert.deepEqual(numberLabels([0, 2500, 5000, 7500]), ["0", "2.5K", "5.0K", "7.5K"])
  assert.deepEqual(numberLabels([1_000_000, 1_000_250]), ["1.00000M", "1.00025M"])
  assert.deepEqual(numberLabels([1.0025, 1.005]), ["1.0025", "1.0050"])
  assert.deepEqual(numberLabels([]), [])
})

test("a time axis has times, however few its ticks are, and names each new day", () => {
  const noon = Date.UTC(2026, 10, 26, 12) / 1000
  assert.deepEqual(timeLabels([noon], 3600), ["12:00\n26 Nov 2026"])
  assert.deepEqual(timeLabels([noon, noon + 30], 30), ["12:00:00\n26 Nov 2026", "12:00:30"])
  assert.deepEqual(timeLabels([noon, noon + 43_200], 43_200), ["12:00\n26 Nov 2026", "00:00\n27 Nov"])
  assert.deepEqual(timeLabels([noon, noon + 86_400 * 40], 86_400 * 40), ["26 Nov\n2026", "5 Jan\n2027"])
})

test("bars fill their axis, even those of less than one unit", () => {
  const near = (got: [number, number], want: [number, number]) => got.forEach((at, i) => assert.ok(Math.abs(at - want[i]!) < 1e-9, `${got} is not ${want}`))
  near(barRange(0, 0.004, false), [0, 0.00432])
  near(barRange(-0.5, 0.25, false), [-0.54, 0.27])
  near(barRange(0, 0, false), [0, 1.08])
  near(barRange(null, null, false), [0, 1.08])
  near(barRange(-2, -1, false), [-2.16, 0])
  near(barRange(0, 0, true), [0, 1.08])
})

test("there is a label within every range of times", () => {
  // Labels are at least 60 pixels apart, and the narrowest chart is 150 pixels wide.
  const most = 150 / 60
  for (const [i, distance] of TIMES.slice(1).entries()) assert.ok(distance > TIMES[i]! && distance <= TIMES[i]! * most, `from ${TIMES[i]} to ${distance} seconds`)
})
