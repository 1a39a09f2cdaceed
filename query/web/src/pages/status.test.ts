import assert from "node:assert/strict"
import { test } from "node:test"
import { howIs } from "./status"

test("a program that does not do its work is not green", () => {
  // The states that ingest, project, serve and dispatch report, and the one shown for a program that reports nothing.
  const states = ["starting", "backfilling", "following", "frozen", "fenced", "standby", "waiting", "building", "retrying", "bad", "serving", "unready", "reading", "unknown"]
  const like = (how: ReturnType<typeof howIs>) => states.filter((state) => howIs(state) === how)
  assert.deepEqual(like("good"), ["backfilling", "following", "building", "serving", "reading"])
  assert.deepEqual(like("warn"), ["starting", "standby", "waiting", "retrying"])
  assert.deepEqual(like("bad"), ["frozen", "fenced", "bad", "unready", "unknown"])
  assert.equal(howIs("a state of a newer version"), "warn")
})
