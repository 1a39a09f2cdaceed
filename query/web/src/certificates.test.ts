import assert from "node:assert/strict"
import { test } from "node:test"
import { lacks, texts } from "./certificates"

const file = (name: string, text: string) => new File([text], name)
const authorities = file("ca.pem", "ca")
const certificate = file("client.pem", "client")
const key = file("client.key", "key")

test("complete input has no error", () => {
  for (const chosen of [{ authorities }, { certificate, key }, { authorities, certificate, key }, { authorities: file("ca.pem", "x".repeat(64 * 1024)) }]) assert.equal(lacks(chosen), null)
})

test("each missing part is named", () => {
  assert.match(lacks({})!, /^Choose a file: the authorities, or/)
  assert.match(lacks({ certificate })!, /^The private key of the client certificate is missing/)
  assert.match(lacks({ authorities, key })!, /^The client certificate of the private key is missing/)
  assert.match(lacks({ authorities: file("none.pem", "") })!, /^The file of the authorities, none\.pem, is empty/)
  assert.match(lacks({ certificate, key: file("big.key", "x".repeat(64 * 1024 + 1)) })!, /^The file of the private key, big\.key, is larger than 64 KiB/)
})

test("only the texts of chosen files are sent", async () => {
  assert.deepEqual(await texts({ certificate, key }), { certificate: "client", key: "key" })
})
