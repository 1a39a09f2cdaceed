import assert from "node:assert/strict"
import { test } from "node:test"
import { sign, verify } from "./signature"

// The example of docs/webhooks.md.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const timestamp = "1614265330"
const body = '{"test": 2432232314}'
const signature = "sha256=2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964"

test("the vector of the documentation holds", async () => {
  assert.equal(await sign(secret, timestamp, body), signature)
  assert.equal(await verify(secret, timestamp, body, signature), "holds")
})

test("any difference from the signed text is detected", async () => {
  assert.equal(await verify(secret.slice("whsec_".length), timestamp, body, signature), "differs")
  assert.equal(await verify(secret, "1614265331", body, signature), "differs")
  assert.equal(await verify(secret, timestamp, `${body}\n`, signature), "differs")
  assert.equal(await verify(secret, timestamp, '{"test":2432232314}', signature), "differs")
  assert.equal(await verify(secret, timestamp, body, signature.replace(/.$/, "5")), "differs")
})

test("a malformed signature is reported as such", async () => {
  for (const text of ["", "sha256=", signature.slice("sha256=".length), signature.slice(0, -1), `${signature}0`, signature.toUpperCase(), "sha1=2e37"]) {
    assert.equal(await verify(secret, timestamp, body, text), "malformed", text)
  }
})

test("text beyond ASCII is signed as UTF-8", async () => {
  // printf '%s' '1.{"name":"Müller 渡辺"}' | openssl dgst -sha256 -hmac whsec_x
  assert.equal(await sign("whsec_x", "1", '{"name":"Müller 渡辺"}'), "sha256=963626103821507ae16388551ea62751028562956618004aa7fc4afc00c14a90")
})
