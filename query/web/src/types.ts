// The shapes of the API's answers that the pages use. openapi.ts is made of schemas/openapi/openapi.yaml by `make web`;
// here its schemas have the names that the pages call them by. Explanation and Series are written by hand: the document
// does not have them.
import type { components } from "./openapi"

type Schemas = components["schemas"]

export type Token = Schemas["Token"]
export type Vault = Schemas["Vault"]
export type VaultDetail = Schemas["VaultDetail"]
export type Nav = Schemas["NavHistory"]
export type User = Schemas["User"]
export type UserDetail = Schemas["UserWithHoldings"]
export type Deposit = Schemas["Deposit"]
export type Withdrawal = Schemas["WithdrawalRequest"]
export type Meta = Schemas["PaginationMeta"]
export type DepositGroup = Schemas["DepositGroup"]
export type Settlement = Schemas["SettlementEntry"]
export type Status = Schemas["Status"]
export type PartnerStats = Schemas["PartnerStats"]
export type Webhook = Schemas["Webhook"]
export type Delivery = Schemas["Delivery"]
export type Attempt = Schemas["Attempt"]

/** A decoded log. What a kind has no use for is null. */
export interface ChainEvent {
  id: string
  seq: string
  kind: string
  vaultAddress: string
  vaultName: string
  blockNumber: string
  timestamp: string
  txHash: string
  logIndex: number
  userAddress: string | null
  partnerId: number | null
  depositId: string | null
  requestIndex: string | null
  assets: string | null
  shares: string | null
  navPerShare: string | null
  totalAssets: string | null
  totalSupply: string | null
  fromId: string | null
  toId: string | null
  state: "live" | "retracted" | "quarantined"
  retractedBySeq: string | null
}

export interface CursorMeta {
  pageSize: number
  next: string | null
  hasNextPage: boolean
}

/** One of the events that a number is made of. */
export interface ExplainedEvent {
  id: string
  seq: string
  kind: string
  vaultAddress: string
  blockNumber: string
  timestamp: string
  txHash: string
  logIndex: number
  userAddress: string | null
  change: string
  sum: string
  state: "live" | "retracted"
  retractedBySeq: string | null
}

export interface Explanation {
  of: string
  field: string
  /** A decimal string, a time, or null where nothing has made it yet. */
  value: string | null
  operation: "sum" | "count" | "last"
  events: ExplainedEvent[]
}

export interface Flow {
  count: number
  assets: string
}

export interface Point {
  start: string
  end: string
  complete: boolean
  nav: { open: string; high: string; low: string; close: string; updates: number } | null
  totalAssets: string | null
  totalSupply: string | null
  deposits: Flow
  requested: Flow
  claimed: Flow
  newUsers: number
  users: number
}

export interface Series {
  vaultAddress: string
  vaultName: string
  interval: "hour" | "day" | "week"
  points: Point[]
  yields: { days: 1 | 7 | 30; from: Nav; to: Nav; numerator: string; denominator: string; percent: string }[]
}
