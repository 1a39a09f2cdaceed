import assert from "node:assert/strict"
import { test } from "node:test"
import { csv, differing, guarded, movements } from "./csv"
import type { ChainEvent, Deposit, UserDetail, Vault, Withdrawal } from "./types"

const vaults = [{ address: "0xA", name: '=Dollar "Prime"', symbol: "vD", decimals: 18, asset: { address: "0xB", symbol: "USD", decimals: 6 } }] as Vault[]
const log = { vaultAddress: "0xA", shares: "1500000000000000000", timestamp: "2026-03-03T00:00:00.000Z", blockNumber: "7", txHash: "0x1", logIndex: 2 }
const deposit = (assetAmount: string, more: Partial<Deposit> = {}) => ({ ...log, assetAmount, ...more }) as Deposit
const event = (effect: ChainEvent["effect"], assets: string | null, more: Partial<ChainEvent> = {}) => ({ ...log, kind: "Withdraw", effect, assets, state: "live", ...more }) as ChainEvent
const request = (assetsClaimed: string, more: Partial<Withdrawal> = {}) => ({ ...log, assetsClaimed, claimedAt: "2026-03-05T00:00:00.000Z", ...more }) as Withdrawal
const summary = (rows: ReturnType<typeof movements>) => rows.map((row) => `${row.type} ${row.vaultAddress} ${row.assets}`)

test("a file for an accountant has decimals and symbols, oldest first, and no retracted events", () => {
  const later = { timestamp: "2026-03-04T00:00:00.000Z" }
  const rows = movements([deposit("2500000")], [event("claimed", "1000001", later), event("instant", "5", { state: "retracted" }), event("deposit", "2500000")], [])
  const [head, ...lines] = csv(rows, vaults).trimEnd().split("\r\n")
  assert.match(head!, /^Time \(UTC\),Vault,.*,Asset,In,Out,/)
  assert.deepEqual(lines, [
    `2026-03-03T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Deposit,USD,2.5,,vD,1.5,7,0x1,2`,
    `2026-03-04T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Withdrawal,USD,,1.000001,vD,1.5,7,0x1,2`,
  ])
})

test("a payment has the amount of its event, whatever the event's name, also in parts and without a request", () => {
  const rows = movements([], [event("claimed", "3"), event("claimed", "4", { blockNumber: "8" }), event("instant", "5", { blockNumber: "9" }), event("requested", "9")], [request("7")])
  assert.deepEqual(summary(rows), ["Withdrawal 0xA 3", "Withdrawal 0xA 4", "Withdrawal 0xA 5"])
})

test("a payment whose event has no amount has the funded amount of the request", () => {
  const rows = movements([], [event("claimed", null), event("instant", "5"), event("claimed", "6", { vaultAddress: "0xC" })], [request("7")])
  assert.deepEqual(summary(rows), ["Withdrawal 0xA 5", "Withdrawal 0xC 6", "Withdrawal (log of the request) 0xA 7"])
  assert.equal(rows.at(-1)?.timestamp, "2026-03-05T00:00:00.000Z")
})

test("movements that do not add up to the user's totals are reported, for every vault", () => {
  const user = (deposited: string, withdrawn: string) =>
    ({ holdings: { deposits: [{ vaultAddress: "0xA", _sum: { assetAmount: deposited } }], withdrawals: [{ vaultAddress: "0xA", _sum: { assetsClaimed: withdrawn } }] } }) as UserDetail
  const rows = movements([deposit("10"), deposit("1")], [event("claimed", "4")], [])
  assert.equal(differing(rows, user("11", "4")), undefined)
  assert.equal(differing(rows, user("12", "4")), "0xA")
  assert.equal(differing(rows, user("11", "3")), "0xA")
  assert.equal(differing([], user("1", "0")), "0xA")
  assert.equal(differing(movements([], [event("instant", "1", { vaultAddress: "0xC" })], []), user("0", "0")), "0xC")
})

test("names cannot become formulas, as in the files of the API", () => {
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
  assert.match(csv(movements([deposit("1")], [], []), [vault]), /\r\n[^,]*,'-1\+1\|cmd,0xA,Deposit,'@A1,0\.000001,,'\+1,/)
})
