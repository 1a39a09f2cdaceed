import assert from "node:assert/strict"
import { test } from "node:test"
import type { Vault } from "../types"
import { unitOf } from "./proof"

const vault = (address: string, symbol: string, decimals: number) => ({ address, symbol: `v${symbol}`, decimals: 18, asset: { address, symbol, decimals } }) as Vault
const [a, b] = [`0x${"aA".repeat(20)}`, `0x${"bB".repeat(20)}`]
const vaults = [vault(a, "USDC", 6), vault(b, "WETH", 18)]
const unit = (of: string, field: string) => {
  const { symbol, decimals } = unitOf(`/api/v1${of}`, field, vaults)
  return `${symbol} ${decimals}`
}

test("a number has the unit of its vault, whether the path or the pointer names the vault", () => {
  const user = `/users/0x${"11".repeat(20)}`
  assert.equal(unit(`/vaults/${a}`, "/totalAssets"), "USDC 6")
  assert.equal(unit(`/vaults/${b.toLowerCase()}`, "/totalSupply"), "vWETH 18")
  assert.equal(unit(`/vaults/${a}/users`, `/0x${"11".repeat(20)}/totalDeposited`), "USDC 6")
  assert.equal(unit(user, `/holdings/deposits/${a}/_sum/assetAmount`), "USDC 6")
  assert.equal(unit(user, `/holdings/withdrawals/${b}/_sum/assetsEstimate`), "WETH 18")
  assert.equal(unit("/settlement/summary", `/${b.toLowerCase()}/depositsToSweep/totalAmount`), "WETH 18")
  assert.equal(unit("/partner/stats", `/byVault/${a}/totalVolume`), "USDC 6")
})

test("counts have no unit, NAVs have 18 decimals, and totals over vaults of different assets have no symbol", () => {
  assert.equal(unit("/settlement/summary", `/${a}/depositsToSweep/count`), " 0")
  assert.equal(unit(`/users/${b}`, `/holdings/deposits/${a}/_count`), " 0")
  assert.equal(unit(`/vaults/${a}`, "/navPerShare"), " 18")
  assert.equal(unit(`/users/0x${"11".repeat(20)}`, "/totalDeposited"), "native units of different assets 0")
  // Assets with equal decimals are still different assets.
  assert.match(unitOf("/api/v1/partner/stats", "/totalVolume", [vaults[0]!, vault(b, "EURC", 6)]).symbol, /different assets/)
})
