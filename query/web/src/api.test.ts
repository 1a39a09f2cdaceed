import assert from "node:assert/strict"
import { test } from "node:test"
import { type ApiError, ask, client, url } from "./api"
import { useAnswer, useExact } from "./answers"

const { signal } = new AbortController()
const vaults = () => ask("/api/v1/vaults", {}, { signal })
const refused = async (call: Promise<unknown>): Promise<ApiError> => call.then(() => assert.fail("it is answered"), (error: ApiError) => error)

test("a request has its path and its parameters, without those that are null", () => {
  assert.equal(url("/api/v1/vaults", {}), "/api/v1/vaults")
  assert.equal(url("/api/v1/vaults/{address}/nav", { path: { address: "0xa/b" }, query: { page: 2, asOfBlock: null } }), "/api/v1/vaults/0xa%2Fb/nav?page=2")
  // A block number beyond what a float can hold.
  assert.equal(url("/api/v1/vaults", { query: { asOfBlock: "9007199254740993" } }), "/api/v1/vaults?asOfBlock=9007199254740993")
})

test("a response has the state that it is of", async (t) => {
  const requests: Request[] = []
  t.mock.method(globalThis, "fetch", async (request: Request) => {
    requests.push(request)
    return new Response(JSON.stringify({ ok: true, data: [], meta: { total: 0 } }), { headers: { "X-Indexed-Block": "12", "X-Indexed-Seq": "34", "X-Generation": "5" } })
  })
  const answer = await ask("/api/v1/users", { query: { sortBy: "totalDeposited", asOfBlock: "12" } }, { signal })
  assert.deepEqual(answer, { data: [], meta: { total: 0 }, position: { block: "12", seq: "34", generation: "5" } })
  assert.equal(requests[0]!.url, "http://navlog.test/api/v1/users?sortBy=totalDeposited&asOfBlock=12")
  assert.equal(requests[0]!.headers.get("Accept"), "application/json")
})

test("an error has the API's message and the time of the next retry", async (t) => {
  let response = () => new Response()
  t.mock.method(globalThis, "fetch", async () => response())
  const error = { code: "CODE", message: "as the API says", requestId: "r1", details: [{ field: "page", reason: "must be 1" }] }
  const failWith = (status: number, headers: Record<string, string> = {}) => {
    response = () => new Response(JSON.stringify({ ok: false, error }), { status, headers })
    return refused(vaults())
  }
  const wrong = await failWith(400)
  assert.deepEqual([wrong.message, wrong.status, wrong.code, wrong.requestId, wrong.retryAfter, wrong.faults], ["as the API says", 400, "CODE", "r1", null, error.details])
  assert.equal((await failWith(503, { "Retry-After": "7" })).retryAfter, 7)
  assert.equal((await failWith(429, { "Retry-After": "0" })).retryAfter, 5)
  assert.equal((await failWith(500)).retryAfter, 5)
  assert.equal((await failWith(503)).retryAfter, null) // it is unknown whether a change happened
  // A response from a proxy in front of the server.
  response = () => new Response("<html>Bad gateway", { status: 502, headers: { "X-Request-Id": "r2" } })
  const gateway = await refused(vaults())
  assert.deepEqual([gateway.message, gateway.status, gateway.code, gateway.requestId, gateway.retryAfter], ["The server responded with 502, and not in JSON.", 502, "NOT_JSON", "r2", 5])
  response = () => new Response("<html>Sign in", { status: 200 })
  assert.deepEqual([(await refused(vaults())).code, (await refused(vaults())).retryAfter], ["NOT_JSON", 5])
  response = () => new Response(null, { status: 204 })
  assert.equal((await refused(vaults())).code, "NOT_JSON")
})

test("missing data may exist at the next block, and an invalid request stays invalid", async (t) => {
  let response = () => new Response()
  t.mock.method(globalThis, "fetch", async () => response())
  const mayPass = async (status: number, ...fields: string[]) => {
    const error = { code: "CODE", message: "as the API says", requestId: "r1", details: fields.length === 0 ? null : fields.map((field) => ({ field, reason: "must be another" })) }
    response = () => new Response(JSON.stringify({ ok: false, error }), { status, headers: status === 503 ? { "Retry-After": "1" } : {} })
    return (await refused(vaults())).mayPass
  }
  assert.deepEqual([await mayPass(404), await mayPass(400, "asOfBlock"), await mayPass(429), await mayPass(503), await mayPass(500)], [true, true, true, true, true])
  assert.deepEqual([await mayPass(400), await mayPass(400, "page"), await mayPass(400, "page", "asOfBlock"), await mayPass(401), await mayPass(414)], [false, false, false, false, false])
})

test("an unreachable server is distinguished from a cancelled request", async (t) => {
  t.mock.method(globalThis, "fetch", async (request: Request) => {
    request.signal.throwIfAborted()
    throw new TypeError("fetch failed")
  })
  assert.deepEqual([(await refused(vaults())).status, (await refused(vaults())).retryAfter], [0, 5])
  const left = new AbortController()
  left.abort()
  assert.equal((await refused(ask("/api/v1/vaults", {}, { signal: left.signal }))).name, "AbortError")
})

/** Never called. The test is that this compiles, and would not without the expected errors. */
export async function doesNotCompile() {
  // @ts-expect-error: there is no such path
  url("/api/v1/vault", {})
  // @ts-expect-error: its parameter is missing
  url("/api/v1/vaults/{address}", {})
  // @ts-expect-error: it has another parameter
  useAnswer("/api/v1/vaults/{address}", { path: { vault: "0x" } })
  // @ts-expect-error: it has no such parameter
  useExact("/api/v1/vaults", { query: { asOfblock: "9" } })
  // @ts-expect-error: there is no such order
  useAnswer("/api/v1/users", { query: { sortBy: "name" } })
  // @ts-expect-error: it has no asOfBlock
  useAnswer("/status", {})
  // @ts-expect-error: the body has another field
  void client.POST("/api/v1/partner/webhooks", { body: { webhook: "https://partner.example/" } })
  const { data, meta } = await ask("/api/v1/users", {})
  // @ts-expect-error: a user has no such field
  void data[0]?.deposited
  // @ts-expect-error: an amount is not a number
  const deposited: number | undefined = data[0]?.totalDeposited
  void deposited
  void meta.total
  // @ts-expect-error: this response has no pages
  void (await ask("/api/v1/vaults", {})).meta.total
}
