import assert from "node:assert/strict"
import { test } from "node:test"
import { judge } from "./sums"
import type { ExplainedEvent, Explanation } from "./types"

const event = (seq: string, change: string, sum: string, state: "live" | "retracted" = "live"): ExplainedEvent => ({
  id: seq, seq, kind: "DepositAccepted", vaultAddress: "0x", blockNumber: "1", timestamp: "", txHash: "0x", logIndex: 0, userAddress: null, change, sum, state, retractedBySeq: null,
})
const page = (value: string | null, operation: Explanation["operation"], ...events: ExplainedEvent[]): Explanation => ({ of: "", field: "", value, operation, events })

const number = { of: "", field: "" }

test("an answer about another number is none, on the page and on the last one", () => {
  const right = page("30", "sum", event("1", "30", "30"))
  const asked = { of: "/api/v1/users/0xa", field: "/totalDeposited" }
  const [others, other] = [{ ...right, ...asked, of: "/api/v1/users/0xb" }, { ...right, ...asked, field: "/totalWithdrawn" }]
  for (const answer of [right, others, other]) assert.deepEqual(judge(answer, answer, true, asked), { kind: "astray", about: answer })
  assert.deepEqual(judge({ ...right, ...asked }, others, true, asked), { kind: "astray", about: others })
  assert.deepEqual(judge(others, null, true, asked), { kind: "astray", about: others })
  assert.equal(judge({ ...right, ...asked }, { ...right, ...asked }, true, asked).kind, "proven")
})

test("a number that its events make is proven", () => {
  const all = page("30", "sum", event("1", "10", "10"), event("2", "0", "10", "retracted"), event("3", "20", "30"))
  assert.equal(judge(all, all, true, number).kind, "proven")
  const big = page("9007199254740993", "sum", event("1", "9007199254740992", "9007199254740992"), event("2", "1", "9007199254740993"))
  assert.equal(judge(big, big, true, number).kind, "proven")
  const none = page("0", "count")
  assert.equal(judge(none, none, true, number).kind, "proven")
  const never = page(null, "last")
  assert.equal(judge(never, never, true, number).kind, "proven")
  const nav = page("105", "last", event("1", "105", "105"))
  assert.equal(judge(nav, nav, true, number).kind, "proven")
  const time = page("2026-01-01T00:00:00.000Z", "last", event("1", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"))
  assert.equal(judge(time, time, true, number).kind, "proven")
})

test("a page in the middle waits for the last one, and is judged by it", () => {
  const middle = page("30", "sum", event("2", "5", "15"), event("3", "5", "20"))
  assert.equal(judge(middle, null, false, number).kind, "open")
  assert.equal(judge(middle, page("30", "sum", event("4", "10", "30")), false, number).kind, "proven")
  assert.deepEqual(judge(middle, page("31", "sum", event("4", "10", "30")), false, number), { kind: "other", sum: "30" })
})

test("what does not add up is found", () => {
  const skipped = page("30", "sum", event("1", "10", "10"), event("2", "10", "30"))
  assert.deepEqual(judge(skipped, skipped, true, number), { kind: "broken", event: skipped.events[1] })
  const begun = page("30", "sum", event("1", "10", "30"))
  assert.equal(judge(begun, begun, true, number).kind, "broken")
  const off = page("31", "sum", event("1", "30", "30"))
  assert.deepEqual(judge(off, off, true, number), { kind: "other", sum: "30" })
  const missing = page("5", "count")
  assert.deepEqual(judge(missing, missing, true, number), { kind: "other", sum: null })
  const rounded = page("1", "sum", event("1", "0.5", "0.5"))
  assert.equal(judge(rounded, rounded, true, number).kind, "broken")
  const last = page("7", "last", event("1", "7", "8"))
  assert.equal(judge(last, last, true, number).kind, "broken")
})
