// A user's deposits and withdrawals as a file for an accountant: one row each, with decimals and symbols. The sums are
// the totals of the user's page.
import { ApiError, ask } from "./api"
import { plain, sum } from "./format"
import { AS_OF } from "./router"
import { wholeList } from "./rows"
import type { UserDetail, Vault } from "./types"

const HEAD = ["Time (UTC)", "Vault", "Vault address", "Type", "Asset", "In", "Out", "Share symbol", "Shares", "Block", "Transaction", "Log"]

/** A movement of assets between a user and a vault. */
export interface Movement extends Row {
  type: "Deposit" | "Withdrawal" | "Withdrawal (log of the request)"
  assets: string
}

/** The columns that the files of deposits, events and requests have in common. */
const COMMON = ["vaultAddress", "timestamp", "shares", "blockNumber", "txHash", "logIndex"] as const
type Row = Record<(typeof COMMON)[number], string>

/** Rows in memory, or rows that are still being read. */
type Rows<Column extends string> = Iterable<Row & Record<Column, string>> | AsyncIterable<Row & Record<Column, string>>

/**
 * The movements of a user at a block, or at the newest block if it is null, and the vaults. Throws an ApiError, also if
 * the movements do not add up to the totals of the user.
 */
export async function ledger(address: string, block: string | null): Promise<{ rows: Movement[]; vaults: Vault[]; block: string | null }> {
  const { data: vaults, position } = await ask("/api/v1/vaults", { query: { [AS_OF]: block } })
  const [path, at] = [{ address }, { [AS_OF]: position.block }]
  const user = await ask("/api/v1/users/{address}", { path, query: at })
  const rows = await movements(
    wholeList("/api/v1/users/{address}/deposits", { path, query: at }, [...COMMON, "assetAmount"]),
    wholeList("/api/v1/events", { query: { ...at, user: address } }, [...COMMON, "state", "effect", "assets"]),
    wholeList("/api/v1/users/{address}/withdrawals", { path, query: { ...at, status: "claimed" } }, [...COMMON, "claimedAt", "assetsClaimed"]),
  )
  const wrong = differing(rows, user.data)
  if (wrong !== undefined) {
    const name = vaults.find((vault) => vault.address === wrong)?.name ?? wrong
    throw new ApiError(`No file is saved: the deposits and withdrawals of ${name} do not add up to its totals. Try again, at a final block if there was a reorganisation.`, 200, "NOT_EQUAL", null, null, null)
  }
  return { rows, vaults, block: position.block }
}

/**
 * The movements of a user, oldest first: the deposits, which leave out those that became void, and the payments. A payment
 * is an event if the events of the vault contain the amounts, because a request may be paid in parts; otherwise it is a
 * request, whose row has the amount that it was funded for. claimed are the requests that were claimed.
 */
export async function movements(deposits: Rows<"assetAmount">, events: Rows<"state" | "effect" | "assets">, claimed: Rows<"claimedAt" | "assetsClaimed">): Promise<Movement[]> {
  const rows: Movement[] = []
  const complete = new Set<string>()
  for await (const { assetAmount, ...deposit } of deposits) rows.push({ ...deposit, type: "Deposit", assets: assetAmount })
  for await (const { state, effect, ...event } of events) {
    if (state !== "live" || (effect !== "claimed" && effect !== "instant") || event.assets === "") continue
    rows.push({ ...event, type: "Withdrawal" })
    if (effect === "claimed") complete.add(event.vaultAddress)
  }
  for await (const { claimedAt, assetsClaimed, ...request } of claimed) {
    if (complete.has(request.vaultAddress)) continue
    rows.push({ ...request, type: "Withdrawal (log of the request)", timestamp: claimedAt || request.timestamp, assets: assetsClaimed || "0" })
  }
  return rows.sort((a, b) => a.timestamp.localeCompare(b.timestamp) || Number(BigInt(a.blockNumber) - BigInt(b.blockNumber)) || Number(a.logIndex) - Number(b.logIndex))
}

/** The address of a vault in which the sums of the movements are not the totals of the user; undefined if there is none. */
export function differing(rows: Movement[], { holdings }: UserDetail): string | undefined {
  const total = (vault: string, deposit: boolean) => sum(rows.filter((row) => row.vaultAddress === vault && (row.type === "Deposit") === deposit).map((row) => row.assets))
  const addresses = new Set([...rows, ...holdings.deposits, ...holdings.withdrawals].map((of) => of.vaultAddress))
  return [...addresses].find((vault) => {
    const deposited = holdings.deposits.find((of) => of.vaultAddress === vault)?._sum.assetAmount ?? "0"
    const withdrawn = holdings.withdrawals.find((of) => of.vaultAddress === vault)?._sum.assetsClaimed ?? "0"
    return total(vault, true) !== deposited || total(vault, false) !== withdrawn
  })
}

/** The file of some movements. */
export function csv(rows: Movement[], vaults: Vault[]): string {
  const lines = rows.flatMap((row) => {
    const vault = vaults.find(({ address }) => address === row.vaultAddress)
    if (vault === undefined) return []
    const amount = plain(row.assets, vault.asset.decimals)
    const [paidIn, paidOut] = row.type === "Deposit" ? [amount, ""] : ["", amount]
    return [
      [row.timestamp, guarded(vault.name), vault.address, row.type, guarded(vault.asset.symbol), paidIn, paidOut, guarded(vault.symbol), row.shares === "" ? "" : plain(row.shares, vault.decimals), row.blockNumber, row.txHash, row.logIndex],
    ]
  })
  return [HEAD, ...lines].map((line) => line.map(field).join(",")).join("\r\n") + "\r\n"
}

function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The parts of a line: up to the places at which a spreadsheet may split it, apart from commas. */
const PARTS = /[^;|\t\r\n\v\f\u0085\u2028\u2029]*[;|\t\r\n\v\f\u0085\u2028\u2029]|[^;|\t\r\n\v\f\u0085\u2028\u2029]+/gu
/** A sign that begins a formula, after characters that some programs drop. */
const FORMULA = /^[\p{White_Space}\p{Cc}\p{Cf}"\uFFFD]*[=+\-@＝＋－＠﹦﹢﹣﹫−]/u
/** Characters that affect the text around them, except for tabs, line ends and joiners. */
const CONTROL = /(?![\t\r\n\u200C\u200D])[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Makes untrusted text harmless in a spreadsheet, as query/files/csv.go does for the files of the API. */
export function guarded(text: string): string {
  const escaped = (character: string) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`
  return (text.match(PARTS) ?? [])
    .map((part) => (FORMULA.test(part) ? "'" : "") + part.replace(CONTROL, escaped))
    .join("")
}
