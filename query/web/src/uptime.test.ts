import assert from "node:assert/strict"
import { test } from "node:test"
import type { Uptime } from "./types"
import { percent, uptimeDays, uptimeOf, uptimeText } from "./uptime"

/** 90 days, of which the last ones have these seconds. */
const last = (...seconds: (number | null)[]) => [...Array<null>(90 - seconds.length).fill(null), ...seconds]

const uptime: Uptime = {
  from: "2025-12-02",
  to: "2026-03-01",
  programs: { ingest: { recorded: last(86400, null, 86400, 100), running: last(86400, null, 86399, 100), inRole: last(86400, null, 43200, 100) } },
}

test("a day without a record is neither up nor down", () => {
  const days = uptimeDays(uptime, "ingest")
  assert.equal(days.length, 90)
  assert.deepEqual([days[0]!.date, days[89]!.date], ["2025-12-02", "2026-03-01"])
  assert.deepEqual(days.slice(-5).map(({ share }) => share), [null, 1, null, 0.5, 1])
  assert.equal(days[87]!.title, "2026-02-27: not recorded")
  assert.equal(days[88]!.title, "2026-02-28: in its role 50.00 %, running 99.99 %")
  assert.ok(uptimeDays(uptime, "serve").every(({ share }) => share === null))
  assert.equal(uptimeOf(uptime, "serve"), null)
})

test("a share is never rounded up", () => {
  assert.equal(percent(86399, 86400), "99.99 %")
  assert.equal(percent(8640000 - 1, 8640000), "99.99 %")
  assert.equal(percent(86400, 86400), "100 %")
  assert.equal(percent(0, 86400), "0.00 %")
})

test("the text names the recorded days and the worst day", () => {
  assert.equal(
    uptimeText(uptime, "ingest"),
    "ingest, 90 days to 2026-03-01: 3 recorded, 87 not recorded. In its role 75.01 % of the recorded time. The lowest day is 2026-02-28: in its role 50.00 %, running 99.99 %.",
  )
  assert.equal(uptimeText(uptime, "serve"), "serve, 90 days to 2026-03-01: 0 recorded, 90 not recorded.")
})
