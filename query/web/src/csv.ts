// A user's deposits and claims as a file for an accountant: one row each, with decimals and symbols. The sums are the
// totals of the user's page.
import { plain } from "./format"
import type { ChainEvent, Vault } from "./types"

const HEAD = ["Time (UTC)", "Vault", "Vault address", "Type", "Asset", "In", "Out", "Share symbol", "Shares", "Block", "Transaction", "Log"]

const types: Record<string, string> = { DepositAccepted: "Deposit", WithdrawalClaimed: "Withdrawal" }

/** The events that move assets; the other kinds are only steps towards one. */
export const KINDS = Object.keys(types).join(",")

/** The rows of a file, oldest first, for events that are given newest first. */
export function movements(events: ChainEvent[], vaults: Vault[]): string {
  const rows = [...events].reverse().flatMap((event) => {
    const vault = vaults.find(({ address }) => address === event.vaultAddress)
    if (vault === undefined || event.state !== "live") return []
    const amount = event.assets === null ? "" : plain(event.assets, vault.asset.decimals)
    const deposit = event.kind === "DepositAccepted"
    return [
      [event.timestamp, vault.name, vault.address, types[event.kind] ?? event.kind, vault.asset.symbol, deposit ? amount : "", deposit ? "" : amount, vault.symbol, event.shares === null ? "" : plain(event.shares, vault.decimals), event.blockNumber, event.txHash, String(event.logIndex)],
    ]
  })
  return [HEAD, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n"
}

/** A field of CSV. A name that a spreadsheet would evaluate is marked as text. */
function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
