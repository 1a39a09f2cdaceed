import assert from "node:assert/strict"
import { test } from "node:test"
import { asOf, blockNumber, here, isPage, there } from "./router"

const at = (href: string) => {
  const [path = "/", query = ""] = href.split("?")
  return { path, query: new URLSearchParams(query) }
}

test("a link within a page keeps the other parameters", () => {
  const place = at("/users?sortBy=firstSeen&page=3&asOfBlock=70")
  assert.equal(here(place, { page: 4 }), "/users?sortBy=firstSeen&page=4&asOfBlock=70")
  assert.equal(here(place, { page: null, sortBy: "" }), "/users?asOfBlock=70")
  assert.equal(here(at("/"), { explain: "/api/v1/vaults/0x1", field: "/totalAssets" }), "/?explain=%2Fapi%2Fv1%2Fvaults%2F0x1&field=%2FtotalAssets")
})

test("a link to another page keeps only the block", () => {
  assert.equal(there(at("/users?page=3&asOfBlock=70"), "/user/0x1"), "/user/0x1?asOfBlock=70")
  assert.equal(there(at("/users?page=3"), "/"), "/")
  assert.equal(there(at("/users?asOfBlock=70"), "/compare", { asOfBlock: null, a: 5 }), "/compare?a=5")
})

test("only a block number is a block", () => {
  for (const text of ["", "-1", "01", "1.5", "1e3", "0x10", "12345678901234567890", " 1", null]) assert.equal(blockNumber(text), null)
  for (const text of ["0", "70", "1234567890123456789"]) assert.equal(blockNumber(text), text)
  assert.equal(asOf(at("/?asOfBlock=rubbish")), null)
})

test("only links to the API's own pages are followed without loading", () => {
  for (const path of ["/", "/vault/0x1", "/users", "/user/0x1", "/events", "/compare", "/partner", "/status"]) assert.ok(isPage(path), path)
  for (const path of ["/docs", "/openapi.json", "/api/v1/vaults", "/users/", "/partner/stats", "/vault/a/b"]) assert.ok(!isPage(path), path)
})
