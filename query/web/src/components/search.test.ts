import assert from "node:assert/strict"
import { test } from "node:test"
import { destination } from "./search"

const vault = { address: "0xA1a1A1a1A1a1A1a1A1a1A1a1A1a1A1a1A1a1A1a1" }
const hash = `0x${"ab".repeat(32)}`

test("a search leads to the page of the input", () => {
  assert.deepEqual(destination(` ${vault.address.toLowerCase()} `, [vault]), [`/vault/${vault.address.toLowerCase()}`, {}])
  assert.deepEqual(destination(vault.address, []), [`/user/${vault.address}`, {}])
  assert.deepEqual(destination(hash, []), [`/tx/${hash}`, {}])
  assert.deepEqual(destination(`${hash.toUpperCase().replace("0X", "0x")}-7`, []), [`/tx/${hash}`, {}])
  assert.deepEqual(destination(`${hash}-7.2`, []), [`/tx/${hash}`, {}])
  assert.deepEqual(destination("00000000-0000-5000-8000-00000000000A", []), ["/partner/delivery/00000000-0000-5000-8000-00000000000a", {}])
  for (const text of ["1234", "1,234", "block 1234", "#1234", "Request 1 234"]) assert.deepEqual(destination(text, []), ["/search", { q: "1234" }], text)
  assert.deepEqual(destination("treasury", []), ["/search", { q: "treasury" }])
  assert.equal(destination("  ", []), null)
})
