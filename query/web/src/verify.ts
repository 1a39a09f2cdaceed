// Verifies the events in a response of the API by their proofs: only the hash of the block is trusted, and the
// visitor has to compare that. It does what `navlog explain --proof` does, in the browser, for one page and for logs of
// the reference contracts: only the command can check that no event appears on two pages, and read logs by a mapping.
//
//     hash of the block ─▶ header ─▶ receipts root ─▶ path ─▶ receipt ─▶ log ─▶ what is shown of the event
import { keccak_256 } from "@noble/hashes/sha3.js"
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js"
import { type Item, bytesOf, decode, encodeIndex, listOf } from "./rlp"
import { isAbout, kindsOf } from "./sums"
import type { ExplainedEvent, Explanation, Proof, Question } from "./types"

/** The result for one event. */
export type Finding =
  | { kind: "verified"; blockHash: string }
  /** The proof does not hold, or what is shown does not follow from it. */
  | { kind: "refuted"; why: string }
  /** The API explains why there is no proof, or the log is in the block and cannot be read here. */
  | { kind: "unproven"; why: string }

/** Verifies the events of a page, which are in chain order, for the requested number at a block. */
export function verify(page: Explanation, asked: Question, asOfBlock: string): Finding[] {
  if (!isAbout(page, asked)) return page.events.map(() => ({ kind: "refuted", why: `The response is about ${page.field} of ${page.of} as a ${page.operation}, not about the requested number.` }))
  let before: Place | null = null
  const counted = new Set<string>()
  return page.events.map((event): Finding => {
    if (event.proof === undefined) {
      const why = event.unproven ?? (event.state === "live" ? null : "It was retracted.")
      return why === null ? { kind: "refuted", why: "There is neither a proof nor a reason why there is none." } : { kind: "unproven", why }
    }
    try {
      const found = prove(event.proof)
      if (found.block > BigInt(asOfBlock)) throw new Error(`the number is as of block ${asOfBlock}, and the log is in block ${found.block}`)
      locate(event, found)
      if (kindOf(found) === undefined) return { kind: "unproven", why: UNREAD }
      compare(asked, page.operation, event, found)
      before = follow(before, event, found)
      const owner = ownerOf(found)
      if (/\/(userCount|uniqueUsers)$/.test(asked.field) && counted.size === counted.add(owner).size) throw new Error(`the number is of users, and ${owner} is counted twice`)
      return { kind: "verified", blockHash: event.proof.blockHash }
    } catch (error) {
      return { kind: "refuted", why: sentence((error as Error).message) }
    }
  })
}

const UNREAD = "Its log is in the block, but this page reads only logs of the reference contracts. The command navlog explain --proof reads it if --mapping names the mapping of the vault."

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

/** A log that is proven to be in the block with a hash, and what else is proven with it. */
interface Found {
  block: bigint
  /** Unix seconds of the block. */
  time: bigint
  address: string
  topics: Uint8Array[]
  data: Uint8Array
  /** How many logs the receipt has. */
  logs: number
}

/** Positions of fields in a header. */
const RECEIPTS_ROOT = 5
const NUMBER = 8
const TIME = 11

/** Returns the log that a proof proves; throws if it proves none. */
export function prove(proof: Proof): Found {
  // With a fractional index, the trie would find a receipt and the order would not.
  for (const place of [proof.transactionIndex, proof.logInReceipt]) if (!isPlace(place)) throw new Error(`a place of the proof is ${place}, and must be a whole number`)
  const raw = bytes(proof.header)
  const own = hash(raw)
  if (own !== proof.blockHash.toLowerCase()) throw new Error(`the header hashes to ${own}, which is not the block's hash ${proof.blockHash}`)
  const header = listOf(decode(raw), "the header")
  const receipt = bytes(proof.receipt)
  const end = walk(bytesOf(header[RECEIPTS_ROOT], "the receipts root of the header"), proof.transactionIndex, proof.path.map(bytes))
  if (hex(end) !== hex(receipt)) throw new Error("the receipt is not the one that the path leads to")
  // A type byte comes before the list, whatever its value: at this point the receipt is already proven.
  const typed = (receipt[0] ?? 0) < 0xc0
  const logs = listOf(listOf(decode(typed ? receipt.subarray(1) : receipt), "the receipt")[3], "what the receipt has as its logs")
  const log = logs[proof.logInReceipt]
  if (log === undefined) throw new Error(`the receipt has ${logs.length} logs, and none at ${proof.logInReceipt}`)
  const [address, topics, data] = listOf(log, "the log")
  return {
    block: whole(bytesOf(header[NUMBER], "the number of the header")),
    time: whole(bytesOf(header[TIME], "the time of the header")),
    address: hex(bytesOf(address, "the address of the log")),
    topics: listOf(topics, "what the log has as its topics").map((topic) => bytesOf(topic, "a topic of the log")),
    data: bytesOf(data, "the data of the log"),
    logs: logs.length,
  }
}

/**
 * Walks a trie of receipts from its root, and returns the receipt of a transaction. Each node must be the one that the
 * previous node refers to.
 */
function walk(root: Uint8Array, transaction: number, path: Uint8Array[]): Uint8Array {
  const wrong = () => new Error(`the path does not lead from the receipts root ${hex(root)} to receipt ${transaction}`)
  let key = nibbles(encodeIndex(transaction))
  let named = root
  for (const [at, node] of path.entries()) {
    if (hash(node) !== hex(named)) throw wrong()
    const items = listOf(decode(node), "a node of the path")
    let next: Item | undefined
    let ends: boolean
    if (items.length === 17) {
      ends = key.length === 0
      next = items[ends ? 16 : key[0]!]
      key = key.slice(1)
    } else if (items.length === 2) {
      // The first nibble marks the end of the path and an odd number of remaining nibbles; an even number is padded.
      const way = nibbles(bytesOf(items[0], "the path of a node"))
      const flag = way.shift() ?? 0
      ends = flag >= 2
      if (flag % 2 === 0) way.shift()
      if (way.some((nibble, i) => nibble !== key[i])) throw wrong()
      key = key.slice(way.length)
      if (ends && key.length > 0) throw wrong()
      next = items[1]
    } else {
      throw new Error(`a node of the path has ${items.length} parts`)
    }
    // A node shorter than its hash would be embedded here as a list; a node with a receipt or a hash is never that
    // short.
    named = bytesOf(next, "what a node of the path names")
    if (ends && named.length > 0 && at === path.length - 1) return named
    if (ends || named.length !== 32) throw wrong()
  }
  throw wrong()
}

/** The position of an event on the chain, as far as it is proven. */
interface Place {
  block: bigint
  transaction: number
  logInReceipt: number
  logs: number
  /** How many logs of the block precede its receipt, according to the shown index. */
  earlier: number
}

/**
 * Compares the position of an event with the previous one: no log may appear twice, and each must have the index that is
 * shown.
 */
function follow(before: Place | null, event: ExplainedEvent, found: Found): Place {
  const { transactionIndex, logInReceipt } = event.proof!
  const index = event.logIndex ?? -1 // a sample is not a log of the block
  const place: Place = { block: found.block, transaction: transactionIndex, logInReceipt, logs: found.logs, earlier: index - logInReceipt }
  const far = `log ${event.logIndex} of the block cannot be log ${logInReceipt} of transaction ${transactionIndex}`
  if (!isPlace(index) || place.earlier < 0 || (place.transaction === 0 && place.earlier !== 0)) throw new Error(far)
  if (before === null || before.block < place.block) return place
  if (before.block > place.block || before.transaction > place.transaction || (before.transaction === place.transaction && before.logInReceipt >= place.logInReceipt)) {
    throw new Error("it is not after the event before it")
  }
  if (before.transaction === place.transaction ? before.earlier !== place.earlier : before.earlier + before.logs > place.earlier) throw new Error(far)
  return place
}

/** The layouts of logs of the reference contracts: Solidity's signature, the numbers of topics and of words of data, and which word is the amount. */
const layouts: Record<string, { signature: string; topics: number; words: number; amount: number }> = {
  DepositAccepted: { signature: "DepositAccepted(uint256,address,uint32,address,uint256,uint256)", topics: 4, words: 3, amount: 1 },
  WithdrawalRequested: { signature: "WithdrawalRequested(uint256,address,uint32,address,uint256,uint256,uint64)", topics: 4, words: 4, amount: 2 },
  WithdrawalClaimed: { signature: "WithdrawalClaimed(uint256,address,address,uint256,uint256)", topics: 4, words: 2, amount: 1 },
  NavUpdated: { signature: "NavUpdated(uint256,address,uint256,uint256,uint256)", topics: 3, words: 3, amount: 0 },
}

const byTopic = new Map(Object.entries(layouts).map(([kind, { signature }]) => [hash(utf8ToBytes(signature)), kind]))

/** The name of a log's event; undefined if it is none of the layouts. */
function kindOf({ topics }: Found): string | undefined {
  return topics[0] && byTopic.get(hex(topics[0]))
}

/** The word of a NAV update that contains a number. */
const ofNav: Record<string, number> = { "/navPerShare": 0, "/totalAssets": 1, "/totalSupply": 2 }

function differ(what: string, proven: string, shown: string) {
  if (proven.toLowerCase() !== shown.toLowerCase()) throw new Error(`the ${what} is ${proven}, and ${shown} is shown`)
}

/** Compares what is shown of an event's block with the proven one, and throws if they differ. */
function locate(event: ExplainedEvent, found: Found) {
  differ("block", String(found.block), event.blockNumber)
  differ("time of the block", new Date(Number(found.time) * 1000).toISOString(), event.timestamp)
}

/** Compares what is shown of an event with its log, and throws if they differ. */
function compare(asked: Question, operation: Explanation["operation"], event: ExplainedEvent, found: Found) {
  const layout = layouts[event.kind]
  const owner = ownerOf(found)
  if (layout === undefined || found.topics.length !== layout.topics || kindOf(found) !== event.kind) throw new Error(`the log is not a ${event.kind}`)
  if (found.data.length !== 32 * layout.words) throw new Error(`the log has ${found.data.length} bytes of data, and a ${event.kind} has ${32 * layout.words}`)
  if (!kindsOf(asked.field).includes(event.kind)) throw new Error(`a ${event.kind} does not affect the number`)
  differ("vault of the log", found.address, event.vaultAddress)
  if (event.userAddress !== null) differ("user of the log", owner, event.userAddress)
  for (const [address, who] of subjects(asked)) {
    const proven = who === "user" ? owner : found.address
    if (proven !== address) throw new Error(`the number is about the ${who} ${address}, and the log about ${proven}`)
  }
  differ("change by the log", said(asked, operation, layout.amount, found), event.change)
}

function ownerOf({ topics }: Found): string {
  return topics[2] === undefined ? "" : hex(topics[2].subarray(12))
}

/** The log's value for the number, in the format of the API. */
function said({ field }: Question, operation: Explanation["operation"], amount: number, found: Found): string {
  if (operation === "count") return "1"
  if (field.endsWith("/firstSeen")) return new Date(Number(found.time) * 1000).toISOString()
  const word = ofNav[field] ?? amount
  return String(whole(found.data.subarray(32 * word, 32 * word + 32)))
}

/** The addresses in the name of a number, and what each stands for. */
function subjects({ of, field }: Question): [address: string, who: "user" | "vault"][] {
  const inPath = [...of.matchAll(/(users\/|vault=|\/)(0x[0-9a-f]{40})/gi)].map(([, at, address]): [string, "user" | "vault"] => [address!.toLowerCase(), at === "users/" ? "user" : "vault"])
  const members = /\/vaults\/[^/]+\/users$/.test(of)
  const inField = [...field.matchAll(/0x[0-9a-f]{40}/gi)].map(([address]): [string, "user" | "vault"] => [address.toLowerCase(), members ? "user" : "vault"])
  return [...inPath, ...inField]
}

function isPlace(index: number): boolean {
  return Number.isSafeInteger(index) && index >= 0
}

function bytes(text: string): Uint8Array {
  return hexToBytes(text.replace(/^0x/, ""))
}

function hex(raw: Uint8Array): string {
  return `0x${bytesToHex(raw)}`
}

function hash(raw: Uint8Array): string {
  return hex(keccak_256(raw))
}

function whole(raw: Uint8Array): bigint {
  return raw.length === 0 ? 0n : BigInt(hex(raw))
}

function nibbles(raw: Uint8Array): number[] {
  return Array.from(raw).flatMap((byte) => [byte >> 4, byte & 15])
}
