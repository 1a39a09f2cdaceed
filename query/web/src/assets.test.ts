import assert from "node:assert/strict"
import { test } from "node:test"
import { byAsset, oneAsset } from "./assets"
import type { Vault } from "./types"

const vault = (address: string, asset: string) => ({ address, asset: { address: asset, symbol: asset, decimals: 6 } }) as Vault

test("amounts of different assets are never added", () => {
  const vaults = [vault("a", "USD"), vault("b", "EUR"), vault("c", "USD"), vault("d", "GBP")]
  const amounts: Record<string, string> = { a: "90071992547409930", b: "5", c: "7" }
  const sums = byAsset(vaults, ({ address }) => (amounts[address] === undefined ? null : { deposited: amounts[address] }))
  assert.deepEqual(sums.map(({ asset, vaults, sums }) => [asset.symbol, vaults.map(({ address }) => address), sums.deposited]), [
    ["USD", ["a", "c"], "90071992547409937"],
    ["EUR", ["b"], "5"],
  ])
  assert.equal(oneAsset(vaults), false)
  assert.equal(oneAsset([vaults[0]!, vaults[2]!]), true)
  assert.equal(oneAsset([]), true)
})
