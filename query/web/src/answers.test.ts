import assert from "node:assert/strict"
import { test } from "node:test"
import { keep, once } from "./answers"

const answer = (seq: string, generation = "1") => ({ data: seq, meta: undefined, position: { block: "1", seq, generation } })

test("a response does not replace one of a later state, unless it is of another generation", () => {
  const kept = (...all: ReturnType<typeof answer>[]) => all.map((one) => keep("/one", one).data).join(" ")
  assert.equal(kept(answer("10"), answer("9"), answer("11"), answer("10"), answer("3", "2")), "10 10 11 11 3")
})

test("equal requests share one response, which names the state at which it was requested", async (t) => {
  const waiting: (() => void)[] = []
  t.mock.method(globalThis, "fetch", async () => {
    await new Promise<void>((resolve) => waiting.push(resolve))
    return new Response(JSON.stringify({ ok: true, data: waiting.length }), { headers: { "X-Indexed-Seq": String(waiting.length), "X-Generation": "1" } })
  })
  const [first, second] = ["1/10", "1/11"].map((state) => once("/two", state, "/status", {}))
  assert.equal(second, first)
  assert.equal(second!.state, "1/10")
  await new Promise((resolve) => setTimeout(resolve))
  waiting[0]!()
  await second!.answer
  const third = once("/two", "1/11", "/status", {})
  assert.deepEqual([third.state, third === first], ["1/11", false])
  await new Promise((resolve) => setTimeout(resolve))
  waiting[1]!()
  assert.equal((await third.answer).position.seq, "2")
})
