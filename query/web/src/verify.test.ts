import assert from "node:assert/strict"
import { test } from "node:test"
import { keccak_256 } from "@noble/hashes/sha3.js"
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js"
import { type Item, bytesOf, decode, encodeIndex, listOf } from "./rlp"
// Responses of the API about a chain that go-ethereum encoded: generated and checked by query/proof_test.go.
import proofs from "./proofs.json"
import type { ExplainedEvent, Explanation, Question } from "./types"
import { prove, verify as verifyAsOf } from "./verify"

const pages = proofs as unknown as Explanation[]
const copy = <T>(of: T): T => JSON.parse(JSON.stringify(of)) as T
const number = (of: string, field: string): Explanation => {
  const found = pages.find((page) => page.of.includes(of) && page.field.endsWith(field))
  assert.ok(found, `${of}#${field}`)
  return copy(found)
}
/** All of them are at the newest block of the chain, which is 7. */
const verify = (page: Explanation, asked: Question) => verifyAsOf(page, asked, "7")
const total = () => number("/users/", "/totalDeposited")

/** Falsifies a page, and returns the result for one event. asked: the request, if it is not what the falsified page names. */
function lie(at: number, spoil: (event: ExplainedEvent & { proof: NonNullable<ExplainedEvent["proof"]> }, page: Explanation) => void, page = total(), asked?: Question): string {
  spoil(page.events[at]! as Parameters<typeof spoil>[0], page)
  const found = verify(page, asked ?? page)[at]!
  return found.kind === "refuted" ? found.why : found.kind
}

test("every event of every number is verified", () => {
  assert.ok(pages.length >= 10 && total().events.length === 6)
  for (const page of pages) {
    assert.ok(page.events.length > 0)
    for (const [i, found] of verify(page, page).entries()) assert.deepEqual(found, { kind: "verified", blockHash: page.events[i]!.proof!.blockHash }, `${page.of}#${page.field}, event ${i}`)
  }
})

test("the proofs are of tries of one and of three levels, and of receipts of all types", () => {
  const all = pages.flatMap((page) => page.events.map((event) => event.proof!))
  const deep = new Set(all.map((proof) => proof.path.length))
  assert.ok(deep.has(2) && deep.has(3), [...deep].join())
  assert.deepEqual([...new Set(all.map((proof) => Number(`0x${proof.receipt.slice(2, 4)}`)).map((head) => (head < 0x80 ? head : 0)))].sort(), [0, 1, 2, 3, 4])
})

test("a changed amount is detected, in the event and in the receipt", () => {
  assert.equal(lie(1, (event) => (event.change = "1016")), "The change by the log is 1015, and 1016 is shown.")
  assert.equal(lie(0, (event) => (event.change = "1"), number("/vaults/", "/navPerShare")), "The change by the log is 1050000000, and 1 is shown.")
  assert.equal(lie(0, (event) => (event.change = "2"), number("/vaults/", "/stats/userCount")), "The change by the log is 1, and 2 is shown.")
  assert.equal(lie(0, (event) => (event.change = "2023-11-14T22:14:21.000Z"), number("/users/", "/firstSeen")), "The change by the log is 2023-11-14T22:14:20.000Z, and 2023-11-14T22:14:21.000Z is shown.")
  const from = (0x3e8 + 15).toString(16).padStart(64, "0")
  assert.equal(lie(1, (event) => (event.proof.receipt = event.proof.receipt.replace(from, "f".repeat(64)))), "The receipt is not the one that the path leads to.")
  const both = lie(1, (event) => {
    const to = "0".repeat(61) + "fff"
    assert.ok(event.proof.path.at(-1)!.includes(from))
    event.proof.receipt = event.proof.receipt.replace(from, to)
    event.proof.path[event.proof.path.length - 1] = event.proof.path.at(-1)!.replace(from, to)
    event.change = "4095"
  })
  assert.match(both, /^The path does not lead from the receipts root 0x[0-9a-f]{64} to receipt 16\.$/)
})

test("a changed field of the header is detected", () => {
  const header = (spoil: (text: string) => string) => lie(0, (event) => (event.proof.header = spoil(event.proof.header)))
  assert.match(header((text) => text.slice(0, -1) + "8"), /^The header hashes to 0x[0-9a-f]{64}, which is not the block's hash 0x/)
  assert.match(header((text) => text + "00"), /^The header hashes to/)
  const other = total()
  assert.match(lie(0, (event) => (event.proof.header = other.events.at(-1)!.proof!.header)), /^The header hashes to/)
  assert.equal(lie(0, (event) => (event.blockNumber = "6")), "The block is 5, and 6 is shown.")
  assert.match(lie(0, (event) => (event.timestamp = "2026-01-01T00:00:00.000Z")), /^The time of the block is 2023-.*, and 2026-01-01T00:00:00.000Z is shown\.$/)
})

test("the complete proof of another block is not accepted for the shown block", () => {
  const other = total().events.at(-1)!.proof!
  assert.equal(lie(0, (event) => (event.proof = other)), "The block is 6, and 5 is shown.")
})

test("the path of another receipt is detected, and so is one that is too short, too long or out of order", () => {
  const other = total()
  const notThere = /^The path does not lead from the receipts root 0x[0-9a-f]{64} to receipt \d+\.$/
  assert.match(lie(0, (event) => (event.proof.path = other.events[1]!.proof!.path)), notThere)
  assert.match(lie(0, (event) => (event.proof.transactionIndex = 2)), notThere)
  assert.match(lie(0, (event) => (event.proof.transactionIndex = 100_000)), notThere)
  assert.match(lie(0, (event) => event.proof.path.pop()), notThere)
  assert.match(lie(0, (event) => (event.proof.path = [])), notThere)
  assert.match(lie(0, (event) => event.proof.path.push(event.proof.path.at(-1)!)), notThere)
  assert.match(lie(0, (event) => event.proof.path.reverse()), notThere)
  // The complete proof of another event, with its receipt: what is shown does not follow from it.
  assert.equal(lie(0, (event) => (event.proof = other.events[1]!.proof!)), "The change by the log is 1015, and 1000 is shown.")
})

test("a swapped log index is detected: in the receipt and in the event", () => {
  assert.equal(lie(0, (event) => (event.proof.logInReceipt = 1)), "The receipt has 1 logs, and none at 1.")
  const swapped = total()
  const [a, b] = [swapped.events[1]!, swapped.events[2]!]
  ;[a.logIndex, b.logIndex] = [b.logIndex, a.logIndex]
  const [, , third] = verify(swapped, swapped)
  assert.equal(third!.kind === "refuted" && third!.why, `Log ${b.logIndex} of the block cannot be log 0 of transaction ${b.proof!.transactionIndex}.`)
  assert.match(lie(0, (event) => ((event.proof.logInReceipt = 0), (event.logIndex = -1))), /^Log -1 of the block cannot be log 0/)
})

test("an event that is listed twice is not verified twice, nor is one out of order", () => {
  const twice = total()
  twice.events.splice(1, 0, copy(twice.events[0]!))
  assert.deepEqual(verify(twice, twice).map((found) => (found.kind === "refuted" ? found.why : found.kind)), ["verified", "It is not after the event before it.", ...Array<string>(5).fill("verified")])
  const order = total()
  ;[order.events[0], order.events[5]] = [order.events[5]!, order.events[0]!]
  assert.deepEqual(verify(order, order).map((found) => (found.kind === "refuted" ? found.why : found.kind)), ["verified", ...Array<string>(5).fill("It is not after the event before it.")])
})

test("an index that is not a whole number is rejected, because the trie would have it under another key", () => {
  for (const field of ["transactionIndex", "logInReceipt"] as const) {
    for (const place of [1.5, -1, "1", Infinity, NaN, null, 2 ** 53]) {
      const twice = total()
      const again = copy(twice.events[0]!)
      Object.assign(again.proof!, { [field]: place })
      again.logIndex! += 1
      twice.events.splice(1, 0, again)
      const [first, second] = verify(twice, twice)
      assert.equal(first!.kind, "verified")
      assert.equal(second!.kind === "refuted" && second!.why, `A place of the proof is ${place}, and must be a whole number.`)
    }
  }
  assert.match(lie(0, (event) => (event.logIndex = 2.5)), /^Log 2.5 of the block cannot be log 0/)
  assert.match(lie(0, (event) => Object.assign(event, { logIndex: "2" })), /^Log 2 of the block cannot be log 0/)
})

test("a true event that does not belong to the number is detected, because its kind follows from the request", () => {
  const claimed = number("/users/", "/totalWithdrawn")
  const navs = number("/vaults/", "/navPerShare")
  const lent = (from: Explanation, to: Explanation) => lie(0, (_, page) => (page.events = copy(from.events)), to)
  assert.equal(lent(claimed, total()), "A WithdrawalClaimed does not affect the number.")
  assert.equal(lent(number("/users/", "/_sum/assetsEstimate"), total()), "A WithdrawalRequested does not affect the number.")
  assert.equal(lent(total(), claimed), "A DepositAccepted does not affect the number.")
  const counts = number("/vaults/", "/stats/userCount")
  Object.assign(navs.events[0]!, { change: "1" })
  assert.equal(lent(navs, counts), "A NavUpdated does not affect the number.")
})

test("a number of users counts each user once", () => {
  const counts = number("/vaults/", "/stats/userCount")
  const { userAddress } = counts.events[0]!
  // The deposits of one user in the vault, of which the first two are events 1 and 2 of the user's deposits.
  counts.events = total().events.slice(0, 2).map((event) => ({ ...event, change: "1" }))
  assert.deepEqual(verify(counts, counts).map((found) => (found.kind === "refuted" ? found.why : found.kind)), ["verified", `The number is of users, and ${userAddress} is counted twice.`])
})

test("an event after the requested block is not in the number", () => {
  const kinds = verifyAsOf(total(), total(), "5").map((found) => (found.kind === "refuted" ? found.why : found.kind))
  assert.deepEqual(kinds, [...Array<string>(5).fill("verified"), "The number is as of block 5, and the log is in block 6."])
})

test("an event of another user, vault or kind is detected", () => {
  const someone = "0x0000000000000000000000000000000000000099"
  assert.match(lie(0, (event) => (event.userAddress = someone)), new RegExp(`^The user of the log is 0x[0-9a-f]{40}, and ${someone} is shown\\.$`))
  assert.match(lie(0, (event) => (event.vaultAddress = someone)), /^The vault of the log is 0x/)
  assert.equal(lie(0, (event) => (event.kind = "WithdrawalRequested")), "The log is not a WithdrawalRequested.")
  assert.match(lie(0, (_, page) => (page.of = `/api/v1/users/${someone}`)), new RegExp(`^The number is about the user ${someone}, and the log about 0x`))
  assert.match(lie(0, (_, page) => (page.field = `/${someone}/totalDeposited`), number("/vaults/", "/totalDeposited")), new RegExp(`^The number is about the user ${someone}`))
  assert.match(lie(0, (_, page) => (page.field = `/holdings/deposits/${someone}/_sum/assetAmount`)), new RegExp(`^The number is about the vault ${someone}`))
  assert.match(lie(0, (_, page) => (page.of = `/api/v1/queues/deposits?vault=${someone}`), number("/queues/", "/count")), new RegExp(`^The number is about the vault ${someone}`))
})

test("the requested number is proven, whatever number the response names", () => {
  const someone = "0x0000000000000000000000000000000000000099"
  const asked = { of: `/api/v1/users/${someone}`, field: "/totalDeposited" }
  // Another user's events, each with its proof: about the right user, about no user, and about the requested user.
  const { of } = total()
  assert.equal(lie(0, () => {}, total(), asked), `The response is about /totalDeposited of ${of} as a sum, not about the requested number.`)
  assert.equal(lie(0, (_, page) => (page.of = ""), total(), asked), "The response is about /totalDeposited of  as a sum, not about the requested number.")
  assert.match(lie(0, (_, page) => (page.of = asked.of), total(), asked), new RegExp(`^The number is about the user ${someone}, and the log about 0x`))
  assert.equal(lie(0, (_, page) => (page.operation = "count")), `The response is about /totalDeposited of ${of} as a count, not about the requested number.`)
  // And another number of the requested user.
  const field = "/holdings/deposits/0x0000000000000000000000000000000000000098/_count"
  assert.equal(lie(5, () => {}, total(), { of, field }), `The response is about /totalDeposited of ${of} as a sum, not about the requested number.`)
  assert.equal(lie(5, () => {}, total(), { of, field: "/totalDeposited" }), "verified")
})

test("an event without a proof has a reason, and one without a reason is wrong", () => {
  const page = total()
  delete page.events[0]!.proof
  delete page.events[1]!.proof
  page.events[1]!.unproven = "It cannot be proven: its header has no receipts root."
  Object.assign(page.events[2]!, { state: "retracted", proof: undefined })
  assert.deepEqual(verify(page, page).slice(0, 3), [
    { kind: "refuted", why: "There is neither a proof nor a reason why there is none." },
    { kind: "unproven", why: "It cannot be proven: its header has no receipts root." },
    { kind: "unproven", why: "It was retracted." },
  ])
})

test("a log of another contract is neither verified nor refuted", () => {
  const cat = (...parts: Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]))
  const encode = (item: Item): Uint8Array => {
    const body = Array.isArray(item) ? cat(...item.map(encode)) : item
    const [short, long] = Array.isArray(item) ? [0xc0, 0xf7] : [0x80, 0xb7]
    if (short === 0x80 && body.length === 1 && body[0]! < 0x80) return body
    if (body.length < 56) return cat(Uint8Array.of(short + body.length), body)
    const length = hexToBytes(body.length.toString(16).padStart(body.length < 256 ? 2 : 4, "0"))
    return cat(Uint8Array.of(long + length.length), length, body)
  }
  const hex = (raw: Uint8Array) => `0x${bytesToHex(raw)}`
  const [vault, user] = ["aa".repeat(20), "bb".repeat(20)]
  // An ERC-4626 deposit in the only receipt of a block.
  const topics = [keccak_256(utf8ToBytes("Deposit(address,address,uint256,uint256)")), ...[user, user].map((of) => hexToBytes(of.padStart(64, "0")))]
  const receipt = encode([Uint8Array.of(1), Uint8Array.of(1), new Uint8Array(256), [[hexToBytes(vault), topics, hexToBytes((1000).toString(16).padStart(64, "0").repeat(2))]]])
  const node = encode([hexToBytes("2080"), receipt])
  const header = encode([...Array<Item>(5).fill(new Uint8Array(32)), keccak_256(node), new Uint8Array(256), new Uint8Array(0), Uint8Array.of(7), Uint8Array.of(1), Uint8Array.of(1), hexToBytes("6553f13c")])
  const proof = { blockHash: hex(keccak_256(header)), header: hex(header), transactionIndex: 0, path: [hex(node)], receipt: hex(receipt), logInReceipt: 0 }
  const event = { kind: "Deposit", state: "live", vaultAddress: `0x${vault}`, userAddress: `0x${user}`, blockNumber: "7", timestamp: new Date(0x6553f13c * 1000).toISOString(), logIndex: 0, change: "1000", sum: "1000", proof }
  const page = { ...total(), of: `/api/v1/users/0x${user}`, events: [event] as ExplainedEvent[] }
  const [found] = verify(page, page)
  assert.deepEqual([found!.kind, /only logs of the reference contracts/.test((found as { why: string }).why)], ["unproven", true])
  assert.equal(lie(0, (shown) => (shown.blockNumber = "6"), copy(page)), "The block is 7, and 6 is shown.")
  assert.match(lie(0, (shown) => (shown.proof.receipt = `${shown.proof.receipt.slice(0, -1)}0`), copy(page)), /^The receipt is not/)
  // A log of a reference contract is decoded, whatever kind it is given.
  assert.equal(lie(0, (shown) => (shown.kind = "Deposit")), "The log is not a Deposit.")
})

test("any change of a proof is detected", () => {
  for (const page of pages.filter(({ operation }) => operation !== "count")) {
    for (const [at, event] of page.events.entries()) {
      const proof = event.proof!
      const spoilt = (part: string, place: number) => part.slice(0, place) + (part[place] === "0" ? "1" : "0") + part.slice(place + 1)
      for (let place = 2; place < proof.header.length; place += 37) assert.notEqual(lie(at, (e) => (e.proof.header = spoilt(proof.header, place)), copy(page)), "verified")
      for (let place = 2; place < proof.receipt.length; place += 37) assert.notEqual(lie(at, (e) => (e.proof.receipt = spoilt(proof.receipt, place)), copy(page)), "verified")
      for (const [i, node] of proof.path.entries()) for (let place = 2; place < node.length; place += 137) assert.notEqual(lie(at, (e) => (e.proof.path[i] = spoilt(node, place)), copy(page)), "verified")
    }
  }
})

test("garbage in a proof is reported in a sentence, without an exception", () => {
  for (const rubbish of ["0x", "0x0", "0xzz", "", `0x${"c1".repeat(100)}00`]) {
    assert.match(lie(0, (event) => (event.proof.header = rubbish)), /\.$/)
    assert.match(lie(0, (event) => (event.proof.receipt = rubbish)), /\.$/)
    assert.match(lie(0, (event) => (event.proof.path[0] = rubbish)), /\.$/)
  }
  assert.throws(() => prove({ ...total().events[0]!.proof!, receipt: "0x7e" }), /not the one/)
})

test("RLP is decoded strictly", () => {
  const raw = (text: string) => Uint8Array.from(Buffer.from(text, "hex"))
  const shown = (item: ReturnType<typeof decode>): unknown => (Array.isArray(item) ? item.map(shown) : Buffer.from(item).toString("hex"))
  for (const [text, want] of [["00", "00"], ["7f", "7f"], ["80", ""], ["8180", "80"], ["83646f67", "646f67"], ["c0", []], ["c88363617483646f67", ["636174", "646f67"]], ["c7c0c1c0c3c0c1c0", [[], [[]], [[], [[]]]]], [`b838${"61".repeat(56)}`, "61".repeat(56)]] as const) {
    assert.deepEqual(shown(decode(raw(text))), want, text)
  }
  for (const text of ["", "81", "8101", "83646f", "c1", "c883636174", "b801aa", `b83761${"61".repeat(54)}`, `b90038${"61".repeat(56)}`, "0000", "c0c0", "bfffffffffffffffff", "ff".repeat(9), "c9c8c7c6c5c4c3c2c1c0"]) assert.throws(() => decode(raw(text)), Error, text)
  assert.deepEqual([0, 1, 127, 128, 255, 256, 65536].map((n) => Buffer.from(encodeIndex(n)).toString("hex")), ["80", "01", "7f", "8180", "81ff", "820100", "83010000"])
  assert.throws(() => bytesOf([], "it"), /it is not there/)
  assert.throws(() => listOf(raw("00"), "it"), /it is not a list/)
})
