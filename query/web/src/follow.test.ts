import assert from "node:assert/strict"
import { mock, test } from "node:test"
import type { Answer } from "./api"
import { Follower, type Source, merge, whileUnseen } from "./follow"
import type { ChainEvent, CursorMeta } from "./types"

const event = (seq: number, block: number, logIndex = 0, state: ChainEvent["state"] = "live"): ChainEvent => ({
  id: `0x-${seq}`, seq: String(seq), kind: "DepositAccepted", vaultAddress: "0x", vaultName: "", blockNumber: String(block), timestamp: "", txHash: "0x", logIndex, userAddress: null, partnerId: null,
  depositId: null, requestIndex: null, assets: null, shares: null, navPerShare: null, totalAssets: null, totalSupply: null, fromId: null, toId: null, state,
  retractedBySeq: state === "retracted" ? "99" : null, effect: "deposit",
})
const summary = (rows: ChainEvent[]) => rows.map((row) => `${row.seq}${row.state === "retracted" ? "-" : ""}`).join(" ")

test("new events are in the order of the chain, and retracted ones keep their place", () => {
  const rows = [event(5, 12), event(4, 11, 3), event(3, 11, 2)]
  assert.equal(summary(merge(rows, [event(7, 13), event(8, 13, 1)], null)), "8 7 5 4 3")
  assert.equal(summary(merge(rows, [event(5, 12, 0, "retracted"), event(9, 11, 4), event(10, 12)], null)), "10 5- 9 4 3")
})

test("an event that is received twice appears once, and does not restore a retracted one", () => {
  const once = merge([event(3, 11)], [event(4, 12), event(4, 12)], null)
  const gone = merge(once, [event(4, 12, 0, "retracted"), event(4, 12)], null)
  assert.equal(summary(gone), "4- 3")
})

test("events of older pages, or that were never received, are left to those pages", () => {
  const rows = [event(5, 12), event(4, 11, 3)]
  assert.equal(summary(merge(rows, [event(6, 11, 2), event(7, 10), event(8, 11, 4), event(1, 9, 0, "retracted")], rows[1]!)), "5 8 4")
})

test("the effects of a log are separate events, in the order of the API", () => {
  const effect = (sub: number, state: ChainEvent["state"] = "live"): ChainEvent => ({ ...event(5, 12, 1, state), id: sub === 0 ? "0x5-1" : `0x5-1.${sub}` })
  const ids = (rows: ChainEvent[]) => rows.map((row) => `${row.id}${row.state === "retracted" ? "-" : ""}`).join(" ")
  const all = merge([event(4, 11)], [effect(0), effect(2), effect(0), effect(10)], null) // the first one is received twice
  assert.equal(ids(all), "0x5-1.10 0x5-1.2 0x5-1 0x-4")
  assert.equal(ids(merge(all, [effect(0, "retracted"), effect(2, "retracted"), effect(10, "retracted")], null)), "0x5-1.10- 0x5-1.2- 0x5-1- 0x-4")
})

test("numbers beyond the precision of a float are distinguished", () => {
  assert.equal(summary(merge([event(1, 0)], [{ ...event(2, 0), blockNumber: "9007199254740993" }, { ...event(3, 0), blockNumber: "9007199254740992" }], null)), "2 3 1")
})

class Fake implements Source {
  static all: Fake[] = []
  readyState = 0
  onopen: Source["onopen"] = null
  onerror: Source["onerror"] = null
  closed = false
  private listeners = new Map<string, (event: { data: string; lastEventId: string }) => void>()
  constructor(readonly href: string) {
    Fake.all.push(this)
  }
  addEventListener(name: string, listener: (event: { data: string; lastEventId: string }) => void) {
    this.listeners.set(name, listener)
  }
  close() {
    this.closed = true
  }
  say(name: string, data: unknown, lastEventId: string) {
    this.listeners.get(name)?.({ data: JSON.stringify(data), lastEventId })
  }
}

function follow(rows: ChainEvent[], hasNextPage = false) {
  Fake.all = []
  const page: Answer<ChainEvent[], CursorMeta> = { data: rows, meta: { pageSize: 50, next: null, hasNextPage }, position: { block: "12", seq: "5", generation: "3" } }
  const shown: string[] = []
  let anew = 0
  const follower = new Follower({ kinds: ["DepositAccepted", "SettleDeposit"], query: { kind: "DepositAccepted", user: null }, page, open: (href) => new Fake(href), show: (now, connected) => shown.push(`${connected ? "on" : "off"}: ${summary(now)}`), anew: () => anew++ })
  follower.start()
  return { follower, source: Fake.all[0]!, shown, anew: () => anew }
}

test("the stream begins where the page ends, and shows whole units only", () => {
  const { source, shown } = follow([event(5, 12)])
  assert.equal(source.href, "/api/v1/stream?kind=DepositAccepted&after=5")
  source.onopen?.({} as Event)
  source.say("unit", { generation: 3, seq: "6" }, "6")
  source.say("DepositAccepted", event(7, 13), "7")
  assert.deepEqual(shown, ["on: 5"])
  source.say("unit", { generation: 3, seq: "8" }, "8")
  source.say("retracted", event(7, 13, 0, "retracted"), "9")
  source.say("DepositAccepted", event(10, 13), "9")
  assert.deepEqual(shown, ["on: 5", "on: 7 5"])
  source.say("unit", { generation: 3, seq: "10" }, "10")
  assert.deepEqual(shown.slice(2), ["on: 10 7- 5"])
})

test("events of the contracts of any vault are received", () => {
  const { source, shown } = follow([])
  source.say("SettleDeposit", { ...event(7, 13), kind: "SettleDeposit" }, "7")
  source.say("unit", { generation: 3, seq: "7" }, "7")
  assert.deepEqual(shown, ["off: 7"])
})

test("a rejected stream is reopened after the last received event, even in the middle of a unit", () => {
  mock.timers.enable({ apis: ["setTimeout"] })
  try {
    const { follower, source, shown } = follow([])
    source.say("DepositAccepted", event(7, 13), "7")
    source.onerror?.({} as Event) // disconnected: the browser reconnects by itself
    mock.timers.tick(60_000)
    assert.equal(Fake.all.length, 1)
    source.readyState = 2
    source.onerror?.({} as Event)
    mock.timers.tick(5000)
    assert.equal(Fake.all[1]?.href, "/api/v1/stream?kind=DepositAccepted&after=7")
    Fake.all[1]!.onopen?.({} as Event)
    Fake.all[1]!.say("unit", { generation: 3, seq: "8" }, "8")
    assert.deepEqual(shown, ["off: ", "off: ", "on: ", "on: 7"])
    Fake.all[1]!.readyState = 2
    Fake.all[1]!.onerror?.({} as Event)
    follower.stop()
    mock.timers.tick(60_000)
    assert.ok(Fake.all[1]!.closed)
    assert.equal(Fake.all[2], undefined)
  } finally {
    mock.timers.reset()
  }
})

test("the page is requested again if the generation changes, or if it is long", () => {
  const { source, anew } = follow([])
  source.say("unit", { generation: 4, seq: "6" }, "6")
  assert.deepEqual([anew()], [1])
  for (let seq = 7; seq < 207; seq++) source.say("DepositAccepted", event(seq, seq), String(seq))
  source.say("unit", { generation: 3, seq: "206" }, "206")
  assert.deepEqual([anew()], [1])
  source.say("DepositAccepted", event(207, 207), "207")
  source.say("unit", { generation: 3, seq: "207" }, "207")
  assert.deepEqual([anew()], [2])
})

test("a page that is hidden for a minute is suspended, even if it was never visible, and resumed when it is visible", () => {
  mock.timers.enable({ apis: ["setTimeout"] })
  try {
    const watch = (visibilityState: DocumentVisibilityState) => {
      const page = Object.assign(new EventTarget(), { visibilityState })
      const calls: string[] = []
      const end = whileUnseen(page as unknown as Document, () => calls.push("gone"), () => calls.push("back"))
      const turn = (to: DocumentVisibilityState) => {
        page.visibilityState = to
        page.dispatchEvent(new Event("visibilitychange"))
      }
      return { calls, turn, end }
    }
    const [hidden, seen, brief, ended] = [watch("hidden"), watch("visible"), watch("hidden"), watch("hidden")]
    ended.end()
    mock.timers.tick(59_999)
    brief.turn("visible")
    assert.deepEqual([hidden.calls, seen.calls, brief.calls, ended.calls], [[], [], [], []])
    mock.timers.tick(1)
    assert.deepEqual([hidden.calls, seen.calls, brief.calls, ended.calls], [["gone"], [], [], []])
    seen.turn("hidden")
    mock.timers.tick(60_000)
    hidden.turn("visible")
    seen.turn("visible")
    ended.turn("hidden")
    mock.timers.tick(60_000)
    assert.deepEqual([hidden.calls, seen.calls, brief.calls, ended.calls], [["gone", "back"], ["gone", "back"], [], []])
  } finally {
    mock.timers.reset()
  }
})
