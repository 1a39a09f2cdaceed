import assert from "node:assert/strict"
import { test } from "node:test"
import type { ApiError } from "./api"
import { csv, differing, guarded, ledger, movements } from "./csv"
import type { UserDetail, Vault } from "./types"

const vaults = [{ address: "0xA", name: '=Dollar "Prime"', symbol: "vD", decimals: 18, asset: { address: "0xB", symbol: "USD", decimals: 6 } }] as Vault[]
const log = { vaultAddress: "0xA", shares: "1500000000000000000", timestamp: "2026-03-03T00:00:00.000Z", blockNumber: "7", txHash: "0x1", logIndex: "2" }
const deposit = (assetAmount: string) => ({ ...log, assetAmount })
const event = (effect: string, assets: string, more = {}) => ({ ...log, effect, assets, state: "live", ...more })
const request = (assetsClaimed: string) => ({ ...log, assetsClaimed, claimedAt: "2026-03-05T00:00:00.000Z" })
const summary = (rows: Awaited<ReturnType<typeof movements>>) => rows.map((row) => `${row.type} ${row.vaultAddress} ${row.assets}`)

test("a file for an accountant has decimals and symbols, oldest first, and no retracted events", async () => {
  const later = { timestamp: "2026-03-04T00:00:00.000Z" }
  const rows = await movements([deposit("2500000")], [event("claimed", "1000001", later), event("instant", "5", { state: "retracted" }), event("deposit", "2500000")], [])
  const [head, ...lines] = csv(rows, vaults).trimEnd().split("\r\n")
  assert.match(head!, /^Time \(UTC\),Vault,.*,Asset,In,Out,/)
  assert.deepEqual(lines, [
    `2026-03-03T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Deposit,USD,2.5,,vD,1.5,7,0x1,2`,
    `2026-03-04T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Withdrawal,USD,,1.000001,vD,1.5,7,0x1,2`,
  ])
})

test("a payment has the amount of its event, whatever the event's name, also in parts and without a request", async () => {
  const rows = await movements([], [event("claimed", "3"), event("claimed", "4", { blockNumber: "8" }), event("instant", "5", { blockNumber: "9" }), event("requested", "9")], [request("7")])
  assert.deepEqual(summary(rows), ["Withdrawal 0xA 3", "Withdrawal 0xA 4", "Withdrawal 0xA 5"])
})

test("a payment whose event has no amount has the funded amount of the request", async () => {
  const rows = await movements([], [event("claimed", ""), event("instant", "5"), event("claimed", "6", { vaultAddress: "0xC" })], [request("7")])
  assert.deepEqual(summary(rows), ["Withdrawal 0xA 5", "Withdrawal 0xC 6", "Withdrawal (log of the request) 0xA 7"])
  assert.equal(rows.at(-1)?.timestamp, "2026-03-05T00:00:00.000Z")
})

const totals = (deposited: string, withdrawn: string) =>
  ({ holdings: { deposits: [{ vaultAddress: "0xA", _sum: { assetAmount: deposited } }], withdrawals: [{ vaultAddress: "0xA", _sum: { assetsClaimed: withdrawn } }] } }) as UserDetail

test("movements that do not add up to the user's totals are reported, for every vault", async () => {
  const rows = await movements([deposit("10"), deposit("1")], [event("claimed", "4")], [])
  assert.equal(differing(rows, totals("11", "4")), undefined)
  assert.equal(differing(rows, totals("12", "4")), "0xA")
  assert.equal(differing(rows, totals("11", "3")), "0xA")
  assert.equal(differing([], totals("1", "0")), "0xA")
  assert.equal(differing(await movements([], [event("instant", "1", { vaultAddress: "0xC" })], []), totals("0", "0")), "0xC")
})

const HEADS = {
  deposits: ["id", "vaultAddress", "vaultName", "assetAmount", "shares", "sweptAt", "txHash", "blockNumber", "logIndex", "timestamp"],
  events: ["id", "vaultAddress", "vaultName", "blockNumber", "timestamp", "txHash", "logIndex", "assets", "shares", "state", "effect"],
  withdrawals: ["id", "vaultAddress", "vaultName", "shares", "assetsClaimed", "claimedAt", "txHash", "blockNumber", "logIndex", "timestamp"],
}
type List = keyof typeof HEADS

/** Answers like the API, with the lists as files. */
function api(lists: Record<List, Record<string, string>[]>, totals: UserDetail, end: (file: ReadableStreamDefaultController) => void) {
  const json = (data: unknown, meta?: object) => new Response(JSON.stringify({ ok: true, data, meta }), { headers: { "X-Indexed-Block": "70" } })
  return async (request: Request) => {
    const { pathname, searchParams } = new URL(request.url)
    const name = pathname.split("/").at(-1) as List
    if (name in HEADS && searchParams.get("format") === "csv") {
      assert.equal(searchParams.get("asOfBlock"), "70")
      const rows = lists[name].filter((row) => searchParams.get("status") === null || row["status"] === searchParams.get("status"))
      const lines = [HEADS[name], ...rows.map((row) => HEADS[name].map((column) => (column === "vaultName" ? '"A ""vault"",\r\nwith €"' : (row[column] ?? ""))))]
      const bytes = new TextEncoder().encode(lines.map((line) => line.join(",") + "\r\n").join(""))
      const start = (file: ReadableStreamDefaultController) => {
        for (let at = 0; at < bytes.length; at += 9_973) file.enqueue(bytes.subarray(at, at + 9_973))
        end(file)
      }
      return new Response(new ReadableStream({ start }))
    }
    return json(name === ("vaults" as string) ? vaults : totals)
  }
}

test("a file for an accountant has every deposit and payment, however many there are", async (t) => {
  const deposits = Array.from({ length: 100_001 }, (_, n) => ({ ...deposit("1"), shares: "", txHash: `0x${n}` }))
  const lists = { deposits, events: [event("deposit", "1"), event("claimed", "3", { blockNumber: "8", txHash: "0xC" })], withdrawals: [{ ...request("9"), status: "claimed" }, { ...request("9"), status: "queued" }] }
  t.mock.method(globalThis, "fetch", api(lists, totals("100001", "3"), (file) => file.close()))
  const { rows, block } = await ledger("0xU", null)
  assert.equal(block, "70")
  assert.equal(new Set(rows.map(({ txHash }) => txHash)).size, 100_002)
  assert.deepEqual(rows[0], { ...log, type: "Deposit", assets: "1", shares: "", txHash: "0x0" })
  assert.deepEqual(rows.at(-1), { ...log, type: "Withdrawal", assets: "3", blockNumber: "8", txHash: "0xC" })
})

test("no file for an accountant is made of a list that was cut off, or that does not add up", async (t) => {
  const lists = { deposits: [deposit("1")], events: [], withdrawals: [] }
  let end = (file: ReadableStreamDefaultController) => file.error(new TypeError("network error"))
  t.mock.method(globalThis, "fetch", (request: Request) => api(lists, totals("1", "0"), end)(request))
  const failed = () => ledger("0xU", "70").then(() => assert.fail("it is complete"), (error: ApiError) => error.code)
  assert.equal(await failed(), "CUT_OFF")
  end = (file) => {
    file.enqueue(new TextEncoder().encode("0x2,0xA"))
    file.close()
  }
  assert.equal(await failed(), "CUT_OFF")
  end = (file) => file.close()
  assert.equal((await ledger("0xU", "70")).rows.length, 1)
  const fetching = t.mock.method(globalThis, "fetch", (request: Request) => (request.url.includes("/events") ? Promise.resolve(new Response("")) : api(lists, totals("1", "0"), end)(request)))
  assert.equal(await failed(), "CUT_OFF")
  fetching.mock.restore()
  const columns = HEADS.events
  HEADS.events = columns.filter((column) => column !== "assets")
  assert.equal(await failed(), "OTHER_COLUMNS")
  HEADS.events = columns
  lists.deposits = []
  assert.equal(await failed(), "NOT_EQUAL")
})

test("names cannot become formulas, as in the files of the API", async () => {
  // The cases of TestGuarded in query/files.
  const cases: [text: string, want: string][] = [
    ...["", "Alpha", "a=b", "Alpha - Beta", "Alpha, +Beta", "naïve 円 👨\u200d👩"].map((text): [string, string] => [text, text]),
    ["=A1", "'=A1"], ["+1", "'+1"], ["-1", "'-1"], ["@SUM(A1)", "'@SUM(A1)"],
    [" =A1", "' =A1"], ["\u00a0\u3000+1", "'\u00a0\u3000+1"], ["\u200b=A1", "'\\u200b=A1"], ["\ufeff-1", "'\\ufeff-1"], ["\x00=A1", "'\\u0000=A1"], ["\ufffd=A1", "'\ufffd=A1"], ["\u200d=A1", "'\u200d=A1"], [`"=A1`, `'"=A1`],
    ["Alpha;=A1", "Alpha;'=A1"], [`a;;"=A1`, `a;;'"=A1`], ["a|@A1", "a|'@A1"], ["\t=A1", "\t'=A1"], ["a\r\n=A1", "a\r\n'=A1"], ["\r=A1", "\r'=A1"], ["\n-1\n+1", "\n'-1\n'+1"], ["a\u2028=A1", "a\\u2028'=A1"], ["a\v=A1", "a\\u000b'=A1"],
    ["＝A1", "'＝A1"], ["＋1", "'＋1"], ["－1", "'－1"], ["＠SUM(A1)", "'＠SUM(A1)"], ["﹦A1", "'﹦A1"], ["−1", "'−1"],
    ["Alpha\u202etxt.", "Alpha\\u202etxt."], ["\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"], ["a\x1b[2J\u009b", "a\\u001b[2J\\u009b"],
  ]
  for (const [text, want] of cases) assert.equal(guarded(text), want, JSON.stringify(text))
  const vault = { ...vaults[0]!, name: "-1+1|cmd", symbol: "+1", asset: { ...vaults[0]!.asset, symbol: "@A1" } }
  assert.match(csv(await movements([deposit("1")], [], []), [vault]), /\r\n[^,]*,'-1\+1\|cmd,0xA,Deposit,'@A1,0\.000001,,'\+1,/)
})
