// A user's deposits and withdrawals as a file for an accountant: one row each, with decimals and symbols. The sums are
// the totals of the user's page.
import { plain, sum } from "./format"
import type { ChainEvent, Deposit, UserDetail, Vault, Withdrawal } from "./types"

const HEAD = ["Time (UTC)", "Vault", "Vault address", "Type", "Asset", "In", "Out", "Share symbol", "Shares", "Block", "Transaction", "Log"]

/** A movement of assets between a user and a vault. */
export interface Movement {
  type: "Deposit" | "Withdrawal" | "Withdrawal (log of the request)"
  vaultAddress: string
  timestamp: string
  assets: string
  shares: string | null
  blockNumber: string
  txHash: string
  logIndex: number
}

/**
 * The movements of a user, oldest first: the deposits, which leave out those that became void, and the payments. A payment
 * is an event if the events of the vault contain the amounts, because a request may be paid in parts; otherwise it is a
 * request, whose row has the amount that it was funded for. claimed are the requests that were claimed.
 */
export function movements(deposits: Deposit[], events: ChainEvent[], claimed: Withdrawal[]): Movement[] {
  const live = events.filter((event) => event.state === "live")
  const paid = live.flatMap((event) => ((event.effect === "claimed" || event.effect === "instant") && event.assets !== null ? [{ ...event, assets: event.assets }] : []))
  const complete = new Set(paid.filter((event) => event.effect === "claimed").map((event) => event.vaultAddress))
  const rows: Movement[] = [
    ...deposits.map((deposit) => ({ ...deposit, type: "Deposit" as const, assets: deposit.assetAmount })),
    ...paid.map((event) => ({ ...event, type: "Withdrawal" as const })),
    ...claimed
      .filter((request) => !complete.has(request.vaultAddress))
      .map((request) => ({ ...request, type: "Withdrawal (log of the request)" as const, timestamp: request.claimedAt ?? request.timestamp, assets: request.assetsClaimed ?? "0" })),
  ]
  return rows.sort((a, b) => a.timestamp.localeCompare(b.timestamp) || Number(BigInt(a.blockNumber) - BigInt(b.blockNumber)) || a.logIndex - b.logIndex)
}

/** The address of a vault in which the sums of the movements are not the totals of the user; undefined if there is none. */
export function differing(rows: Movement[], { holdings }: UserDetail): string | undefined {
  const total = (vault: string, deposit: boolean) => sum(rows.filter((row) => row.vaultAddress === vault && (row.type === "Deposit") === deposit).map((row) => row.assets))
  const addresses = [...rows, ...holdings.deposits, ...holdings.withdrawals].map((of) => of.vaultAddress)
  return addresses.find((vault) => {
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
      [row.timestamp, guarded(vault.name), vault.address, row.type, guarded(vault.asset.symbol), paidIn, paidOut, guarded(vault.symbol), row.shares === null ? "" : plain(row.shares, vault.decimals), row.blockNumber, row.txHash, String(row.logIndex)],
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
