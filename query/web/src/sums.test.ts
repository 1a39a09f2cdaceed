import assert from "node:assert/strict"
import { test } from "node:test"
import { type At, addedUp, judge, kindsOf } from "./sums"
import type { ExplainedEvent, Explanation } from "./types"

const event = (seq: string, change: string, sum: string, state: "live" | "retracted" = "live"): ExplainedEvent => ({
  id: seq, seq, kind: "DepositAccepted", vaultAddress: "0x", blockNumber: "1", timestamp: "", txHash: "0x", logIndex: 0, userAddress: null, change, sum, state, retractedBySeq: null,
})
const fields = { sum: "/totalDeposited", count: "/stats/userCount", last: "/navPerShare" }
const page = (value: string | null, operation: Explanation["operation"], ...events: ExplainedEvent[]): Explanation => ({ of: "", field: fields[operation], value, operation, events })

/** Judges a page as an answer about the number that it names itself. */
const judged = (page: Explanation, last: Explanation | null, at: At) => judge(page, last, at, page)
const only = { page: 1, last: 1 }

test("a response about another number is rejected, on the page and on the last page", () => {
  const right = page("30", "sum", event("1", "30", "30"))
  const requested = { of: "/api/v1/users/0xa", field: "/totalDeposited" }
  const [others, other] = [{ ...right, ...requested, of: "/api/v1/users/0xb" }, { ...right, ...requested, field: "/totalWithdrawn" }]
  for (const answer of [right, others, other]) assert.deepEqual(judge(answer, answer, only, requested), { kind: "astray", about: answer })
  assert.deepEqual(judge({ ...right, ...requested }, others, only, requested), { kind: "astray", about: others })
  assert.deepEqual(judge(others, { ...right, ...requested }, only, requested), { kind: "astray", about: others })
  assert.deepEqual(judge(others, null, only, requested), { kind: "astray", about: others })
  assert.equal(judge({ ...right, ...requested }, { ...right, ...requested }, only, requested).kind, "proven")
})

test("the operation follows from the requested number, and not from the response", () => {
  const [sum, count, last] = ["sum" as const, "count" as const, "last" as const]
  const of: [string, Explanation["operation"]][] = [
    ["/totalDeposited", sum], ["/0xa/totalWithdrawn", sum], ["/holdings/withdrawals/0/_sum/assetsEstimate", sum], ["/0/withdrawalsToFund/totalAmount", sum], ["/byVault/0/totalVolume", sum],
    ["/holdings/deposits/0/_count", count], ["/stats/userCount", count], ["/stats/pendingWithdrawals", count], ["/0/count", count], ["/meta/total", count], ["/totalDeposits", count], ["/uniqueUsers", count], ["/byVault/0/depositCount", count],
    ["/firstSeen", last], ["/0xa/firstSeen", last], ["/navPerShare", last], ["/totalAssets", last], ["/totalSupply", last],
  ]
  for (const [field, right] of of) {
    for (const operation of [sum, count, last]) {
      const answer = { ...page("1", operation, event("1", "1", "1")), field }
      assert.equal(judged(answer, answer, only).kind, operation === right ? "proven" : "astray", `${field} as ${operation}`)
    }
  }
})

test("the kinds of its events follow from the requested number, too", () => {
  const [deposit, request] = ["DepositAccepted", "WithdrawalRequested"]
  const of: Record<string, string[]> = {
    [deposit!]: ["/totalDeposited", "/0xa/totalDeposited", "/holdings/deposits/0/_sum/assetAmount", "/holdings/deposits/0/_count", "/0/depositsToSweep/count", "/0/depositsToSweep/totalAmount", "/0/count", "/totalDeposits", "/totalVolume", "/uniqueUsers", "/byVault/0/depositCount", "/byVault/0/totalVolume"],
    [request!]: ["/holdings/withdrawals/0/_sum/assetsEstimate", "/holdings/withdrawals/0/_count", "/stats/pendingWithdrawals", "/0/withdrawalsToFund/count", "/0/withdrawalsToFund/totalAmount", "/meta/total"],
    WithdrawalClaimed: ["/totalWithdrawn", "/0xa/totalWithdrawn"],
    [`${deposit},${request}`]: ["/firstSeen", "/0xa/firstSeen", "/stats/userCount"],
    NavUpdated: ["/navPerShare", "/totalAssets", "/totalSupply"],
  }
  for (const [kinds, fields] of Object.entries(of)) for (const field of fields) assert.equal(kindsOf(field).join(), kinds, field)
})

test("a number that equals the sum of its events is proven", () => {
  const all = page("30", "sum", event("1", "10", "10"), event("2", "0", "10", "retracted"), event("3", "20", "30"))
  assert.equal(judged(all, all, only).kind, "proven")
  const big = page("9007199254740993", "sum", event("1", "9007199254740992", "9007199254740992"), event("2", "1", "9007199254740993"))
  assert.equal(judged(big, big, only).kind, "proven")
  const none = page("0", "count")
  assert.equal(judged(none, none, only).kind, "proven")
  const never = page(null, "last")
  assert.equal(judged(never, never, only).kind, "proven")
  const nav = page("105", "last", event("1", "105", "105"))
  assert.equal(judged(nav, nav, only).kind, "proven")
  const time = page("2026-01-01T00:00:00.000Z", "last", event("1", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"))
  assert.equal(judged(time, time, only).kind, "proven")
})

test("a page in the middle waits for the last page, and is compared with it", () => {
  const middle = page("30", "sum", event("2", "5", "15"), event("3", "5", "20"))
  assert.equal(judged(middle, null, { page: 2, last: 4 }).kind, "open")
  assert.equal(judged(middle, page("30", "sum", event("4", "10", "30")), { page: 2, last: 4 }).kind, "proven")
  assert.deepEqual(judged(middle, page("31", "sum", event("4", "10", "30")), { page: 2, last: 4 }), { kind: "other", sum: "30" })
})

test("the last page continues from the page before it", () => {
  const [first, last] = [page("30", "sum", event("1", "10", "10")), page("30", "sum", event("2", "20", "30"))]
  assert.equal(judged(first, last, { page: 1, last: 2 }).kind, "proven")
  const skips = page("30", "sum", event("3", "15", "30"))
  assert.deepEqual(judged(first, skips, { page: 1, last: 2 }), { kind: "broken", event: skips.events[0] })
  assert.equal(judged(first, skips, { page: 1, last: 3 }).kind, "proven") // the events in between are not loaded
  assert.equal(judged(page("30", "sum"), last, { page: 1, last: 2 }).kind, "broken")
})

test("the shown number is that of the page, and not that of the last page", () => {
  const [first, last] = [page("31", "sum", event("1", "10", "10")), page("30", "sum", event("2", "20", "30"))]
  assert.deepEqual(judged(first, last, { page: 1, last: 2 }), { kind: "other", sum: "30" })
})

test("retracted events do not change the sum, and a page may have only those", () => {
  const [first, last] = [page("10", "sum", event("1", "10", "10")), page("10", "sum", event("2", "0", "10", "retracted"))]
  assert.equal(judged(first, last, { page: 1, last: 2 }).kind, "proven")
  assert.equal(judged(last, last, { page: 2, last: 2 }).kind, "proven")
  const counts = page("10", "sum", event("1", "5", "5"), event("2", "5", "10", "retracted"))
  assert.deepEqual(judged(counts, counts, only), { kind: "broken", event: counts.events[1] })
  const nav = page("105", "last", event("1", "105", "105"), event("2", "0", "105", "retracted"))
  assert.equal(judged(nav, nav, only).kind, "proven")
})

test("the text names the events that the browser has added up", () => {
  const of = (n: number) => page("0", "sum", ...Array.from({ length: n }, (_, i) => event(String(i), "0", "0")))
  const single = of(1)
  assert.equal(addedUp(1, single, single, only), "1 event, added up again by your browser.")
  assert.equal(addedUp(80, of(50), of(30), { page: 1, last: 2 }), "80 events, added up again by your browser.")
  const end = of(30)
  assert.equal(addedUp(80, end, end, { page: 2, last: 2 }), "Of 80 events your browser has added up again the 30 of this page, which is the last. The sum of the others is what the API says.")
  assert.match(addedUp(30, end, end, { page: 2, last: 2 }), /^Of 30 events/) // earlier events were not seen, whatever the total is
  for (const page of [1, 7, 9]) assert.equal(addedUp(500, of(50), of(50), { page, last: 10 }), "Of 500 events your browser has added up again the 50 of this page and the 50 of the last. The sum of the others is what the API says.")
})

test("a wrong sum is detected", () => {
  const skipped = page("30", "sum", event("1", "10", "10"), event("2", "10", "30"))
  assert.deepEqual(judged(skipped, skipped, only), { kind: "broken", event: skipped.events[1] })
  const begun = page("30", "sum", event("1", "10", "30"))
  assert.equal(judged(begun, begun, only).kind, "broken")
  const off = page("31", "sum", event("1", "30", "30"))
  assert.deepEqual(judged(off, off, only), { kind: "other", sum: "30" })
  const missing = page("5", "count")
  assert.deepEqual(judged(missing, missing, only), { kind: "other", sum: null })
  const rounded = page("1", "sum", event("1", "0.5", "0.5"))
  assert.equal(judged(rounded, rounded, only).kind, "broken")
  const last = page("7", "last", event("1", "7", "8"))
  assert.equal(judged(last, last, only).kind, "broken")
})
