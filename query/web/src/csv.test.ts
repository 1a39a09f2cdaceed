import assert from "node:assert/strict"
import { test } from "node:test"
import { movements } from "./csv"
import type { ChainEvent, Vault } from "./types"

const vaults = [{ address: "0xA", name: '=Dollar "Prime"', symbol: "vD", decimals: 18, asset: { address: "0xB", symbol: "USD", decimals: 6 } }] as Vault[]
const event = (kind: string, assets: string, more: Partial<ChainEvent> = {}) =>
  ({ kind, vaultAddress: "0xA", assets, shares: "1500000000000000000", state: "live", timestamp: "2026-03-03T00:00:00.000Z", blockNumber: "7", txHash: "0x1", logIndex: 2, ...more }) as ChainEvent

test("a file for an accountant has decimals and symbols, oldest first, and nothing that was reorganised away", () => {
  const file = movements([event("WithdrawalClaimed", "1000001"), event("DepositAccepted", "5", { state: "retracted" }), event("DepositAccepted", "2500000")], vaults)
  const [head, ...rows] = file.trimEnd().split("\r\n")
  assert.match(head!, /^Time \(UTC\),Vault,.*,Asset,In,Out,/)
  assert.deepEqual(rows, [
    `2026-03-03T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Deposit,USD,2.5,,vD,1.5,7,0x1,2`,
    `2026-03-03T00:00:00.000Z,"'=Dollar ""Prime""",0xA,Withdrawal,USD,,1.000001,vD,1.5,7,0x1,2`,
  ])
})
