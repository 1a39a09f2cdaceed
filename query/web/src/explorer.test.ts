import assert from "node:assert/strict"
import { test } from "node:test"
import { outside } from "./explorer"

const explorer = { tx: "https://explorer.example/tx/{tx}", address: "http://explorer.example/?of={address}#top", block: null }

test("a link has the value in place of the placeholder", () => {
  assert.equal(outside(explorer, "tx", "0xab"), "https://explorer.example/tx/0xab")
  assert.equal(outside(explorer, "address", "0xCd"), "http://explorer.example/?of=0xCd#top")
})

test("there is no link without an explorer, for a kind without a template, or with another scheme than http", () => {
  assert.equal(outside(null, "tx", "0xab"), null)
  assert.equal(outside(explorer, "block", "7"), null)
  assert.equal(outside({ ...explorer, block: "javascript:alert({block})" }, "block", "7"), null)
})

test("a value from the address bar stays one part of the URL", () => {
  assert.equal(outside(explorer, "tx", "../?a=b#$&{tx}"), "https://explorer.example/tx/..%2F%3Fa%3Db%23%24%26%7Btx%7D")
})
