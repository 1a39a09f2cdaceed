import assert from "node:assert/strict"
import { test } from "node:test"
import { dayText, daysText, howWell, ms, succeeded, sumOf } from "./endpointdays"
import type { EndpointDay } from "./types"

const day = (day: string, attempts: number, failed: number, medianMs: number | null, atLeast = false): EndpointDay => ({ day, attempts, failed, medianMs, atLeast })
const days = [day("2026-03-01", 0, 0, null), day("2026-03-02", 100, 5, 40), day("2026-03-03", 2000, 0, 120), day("2026-03-04", 1, 1, null)]

test("days add up, and the slowest day has the largest median", () => {
  assert.deepEqual(sumOf(days), { attempts: 2101, failed: 6, atLeast: false, slowest: days[2] })
  assert.deepEqual(sumOf([]), { attempts: 0, failed: 0, atLeast: false, slowest: null })
  assert.equal(sumOf([day("2026-03-05", 5000, 0, 1, true)]).atLeast, true)
})

test("the text and the colour of a day", () => {
  assert.deepEqual(days.map(howWell), ["good", "warn", "good", "bad"])
  assert.deepEqual(days.map(succeeded), [null, "95.00 %", "100 %", "0.00 %"])
  assert.deepEqual(days.map(dayText), ["2026-03-01: no attempts", "2026-03-02: 100 attempts, 5 failed, median 40 ms", "2026-03-03: 2,000 attempts, 0 failed, median 120 ms", "2026-03-04: 1 attempt, 1 failed"])
  assert.equal(dayText(day("2026-03-05", 5000, 0, 1, true)), "2026-03-05: 5,000 or more attempts, 0 failed, median 1 ms")
})

test("a short time is never shown as zero", () => {
  assert.deepEqual([0, 1, 1234].map(ms), ["<1 ms", "1 ms", "1,234 ms"])
})

test("the text about all days", () => {
  assert.equal(daysText(days), "4 days to 2026-03-04: 2,101 attempts on 3 days, 99.71 % succeeded. The worst day is 2026-03-04: 1 attempt, 1 failed.")
  assert.equal(daysText(days.slice(2, 3)), "1 day to 2026-03-03: 2,000 attempts on 1 day, 100 % succeeded.")
  assert.equal(daysText(days.slice(0, 1)), "1 day to 2026-03-01: no attempts.")
})
