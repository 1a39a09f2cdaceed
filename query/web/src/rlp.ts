// RLP, the encoding of Ethereum's headers, receipts and trie nodes.

/** What is encoded: bytes, or a list of items. */
export type Item = Uint8Array | Item[]

/** The maximum depth of nested lists: those of a receipt are four deep. */
const DEEPEST = 8

/** Decodes a single item; throws if the bytes are not an item, or not in the shortest encoding. */
export function decode(bytes: Uint8Array): Item {
  const [item, end] = read(bytes, 0, bytes.length, 0)
  if (end !== bytes.length) throw new Error(`${bytes.length - end} bytes follow the end of the RLP`)
  return item
}

function read(bytes: Uint8Array, at: number, end: number, depth: number): [item: Item, end: number] {
  const head = bytes[at]
  if (at >= end || head === undefined) throw new Error("the RLP ends too early")
  if (depth > DEEPEST) throw new Error(`the RLP nests lists more than ${DEEPEST} deep`)
  if (head < 0x80) return [bytes.subarray(at, at + 1), at + 1]
  const isList = head >= 0xc0
  let from = at + 1
  let length = head - (isList ? 0xc0 : 0x80)
  if (length > 55) {
    const digits = bytes.subarray(from, from + length - 55)
    from += length - 55
    length = digits.reduce((n, digit) => n * 256 + digit, 0)
    if (length <= 55 || digits[0] === 0) throw new Error("the RLP has a length that is not the shortest")
  }
  const to = from + length
  if (to > end) throw new Error("the RLP ends too early")
  if (!isList) {
    if (length === 1 && bytes[from]! < 0x80) throw new Error("the RLP has a byte that is not the shortest")
    return [bytes.subarray(from, to), to]
  }
  const items: Item[] = []
  for (let next = from; next < to; ) {
    const [item, after] = read(bytes, next, to, depth + 1)
    items.push(item)
    next = after
  }
  return [items, to]
}

/** The bytes of an item that is not a list. */
export function bytesOf(item: Item | undefined, what: string): Uint8Array {
  if (!(item instanceof Uint8Array)) throw new Error(`${what} is not there`)
  return item
}

/** The items of an item that is a list. */
export function listOf(item: Item | undefined, what: string): Item[] {
  if (!Array.isArray(item)) throw new Error(`${what} is not a list`)
  return item
}

/** A whole number in the form in which it is encoded as an item: big-endian, without leading zeros. */
export function encodeIndex(n: number): Uint8Array {
  const digits: number[] = []
  for (let left = n; left > 0; left = Math.floor(left / 256)) digits.unshift(left % 256)
  return digits.length === 1 && digits[0]! < 0x80 ? Uint8Array.from(digits) : Uint8Array.from([0x80 + digits.length, ...digits])
}
