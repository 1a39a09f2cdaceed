import assert from "node:assert/strict"
import { test } from "node:test"
import { ApiError } from "./api"
import { type Run, askPartner, removeKey, giveKey, register, replayAll, statement, explained } from "./partner"

const refusal = (status: number, retryAfter: number | null = null, details: unknown = null, code = "CODE") => new ApiError("as the API says", status, code, details, "r1", retryAfter)

test("an error explains what to do", () => {
  assert.match(explained(refusal(401)).message, /unknown or was revoked/)
  assert.match(explained(refusal(403)).message, /disabled/)
  assert.match(explained(refusal(503, 5)).message, /not responding/)
  assert.match(explained(refusal(400, null, { reason: "port" }, "INVALID_WEBHOOK_URL")).message, /443/)
  // Errors that the API explains better are left unchanged.
  for (const error of [refusal(404), refusal(429, 7), refusal(500, 5), refusal(503, 5, { progress: {} }), refusal(503)]) assert.equal(explained(error), error)
  for (const reason of ["syntax", "new"]) assert.equal(explained(refusal(400, null, { reason }, "INVALID_WEBHOOK_URL")).message, "as the API says")
  assert.deepEqual([explained(refusal(429, 7)).retryAfter, explained(refusal(429, 7)).requestId], [7, "r1"])
})

/** Runs replays against an API with the given responses, and returns what was sent, the pauses and the reports. */
async function replayed(answers: (ApiError | null)[], ids: string[], stop?: (run: Run) => boolean) {
  const sent: string[] = []
  const waited: number[] = []
  const stopped = new AbortController()
  let last: Run | undefined
  await replayAll(
    ids,
    async (id) => {
      sent.push(id)
      const answer = answers.shift() ?? null
      if (answer !== null) throw answer
    },
    async (seconds) => void waited.push(seconds),
    stopped.signal,
    (run) => {
      last = run
      if (stop?.(run)) stopped.abort()
    },
  )
  return { sent, waited, run: last! }
}

test("each event is replayed once, and a request that is rejected for now is sent again later", async () => {
  const { sent, waited, run } = await replayed([null, refusal(429, 31), refusal(503, 5), null, null], ["a", "b", "c"])
  assert.deepEqual(sent, ["a", "b", "b", "b", "c"])
  assert.deepEqual(waited, [31, 5])
  assert.deepEqual(run, { done: 3, failures: [], waits: null, why: null, ended: true })
})

test("no event is lost while a network, proxy or server is down", async () => {
  const { sent, waited, run } = await replayed([null, refusal(0, 5), refusal(502, 5), refusal(504, 5), null], ["a", "b"])
  assert.deepEqual(sent, ["a", "b", "b", "b", "b"])
  assert.deepEqual(waited, [5, 5, 5])
  assert.deepEqual(run, { done: 2, failures: [], waits: null, why: null, ended: true })
})

test("a final rejection is reported, and the others continue", async () => {
  const { sent, run } = await replayed([refusal(404), null], ["a", "b"])
  assert.deepEqual(sent, ["a", "b"])
  assert.deepEqual([run.done, run.failures], [1, [{ id: "a", message: "as the API says" }]])
})

test("an invalid key or the user ends the run", async () => {
  for (const status of [401, 403]) assert.deepEqual((await replayed([refusal(status)], ["a", "b"])).sent, ["a"])
  const stopped = await replayed([null, refusal(429, 60)], ["a", "b", "c"], (run) => run.waits !== null)
  assert.deepEqual(stopped.sent, ["a", "b"])
  assert.deepEqual([stopped.run.done, stopped.run.ended, stopped.run.waits], [1, true, null])
})

test("a key that the API rejects is never used, whatever the view", async (t) => {
  t.mock.method(globalThis, "fetch", async () => new Response(JSON.stringify({ ok: false, error: { code: "UNAUTHORIZED", message: "m", requestId: "r" } }), { status: 401 }))
  await assert.rejects(giveKey("nk_test_wrong", true, async (trial) => (await askPartner("/api/v1/partner/stats", {}, undefined, trial)).data.partnerName), /unknown or was revoked/)
  await assert.rejects(askPartner("/api/v1/partner/stats", {}), /no key/)
})

test("the key is sent as a header, without caching, until it is removed or rejected", async (t) => {
  const requests: Request[] = []
  let status = 200
  t.mock.method(globalThis, "fetch", async (request: Request) => {
    requests.push(request)
    return new Response(JSON.stringify(status === 200 ? { ok: true, data: 1 } : { ok: false, error: { code: "X", message: "m", requestId: "r" } }), { status, headers: { "Content-Disposition": 'attachment; filename="s.json"' } })
  })
  const { signal } = new AbortController()
  const stats = () => askPartner("/api/v1/partner/stats", { query: { asOfBlock: "9" } }, signal)
  const file = () => statement({ from: "2026-01-01", to: "2026-01-31" }, signal)
  await assert.rejects(stats(), /no key/)
  await giveKey("nk_test_1", false, async () => "Seven")
  await stats()
  await register("https://partner.example/")
  assert.equal((await file()).name, "s.json")
  for (const { url, headers, cache } of requests) {
    assert.ok(!url.includes("nk_test"), url)
    assert.equal(headers.get("x-api-key"), "nk_test_1")
    assert.equal(cache, "no-store")
  }
  const [asked, sent, saved] = requests as [Request, Request, Request]
  assert.deepEqual([asked.method, new URL(asked.url).search], ["GET", "?asOfBlock=9"])
  assert.deepEqual([sent.method, sent.headers.get("Content-Type"), await sent.json()], ["POST", "application/json", { url: "https://partner.example/" }])
  assert.equal(new URL(saved.url).search, "?from=2026-01-01&to=2026-01-31")
  status = 403
  await assert.rejects(stats(), /disabled/)
  status = 401
  await assert.rejects(file(), /revoked/)
  const before = requests.length
  await assert.rejects(stats(), /no key/)
  await giveKey("nk_test_2", false, async () => "Seven")
  removeKey()
  await assert.rejects(stats(), /no key/)
  assert.equal(requests.length, before)
})
