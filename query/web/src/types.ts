// The shapes of the API's answers that the pages use; schemas/openapi/openapi.yaml says what each field is.

export interface Token {
  address: string
  symbol: string
  decimals: number
}

export interface Vault {
  address: string
  name: string
  symbol: string
  chainId: number
  decimals: number
  asset: Token
  totalAssets: string | null
  totalSupply: string | null
  navPerShare: string | null
  navUpdatedAt: string | null
  startBlock: string
}

export interface VaultDetail extends Vault {
  stats: { userCount: number; pendingWithdrawals: number; lastSweepAt: string | null; lastNavAt: string | null }
}

export interface Nav {
  id: string
  vaultAddress: string
  navPerShare: string
  totalAssets: string
  totalSupply: string
  timestamp: string
  blockNumber: string
  txHash: string
  logIndex: number
}

export interface User {
  address: string
  firstSeen: string
  totalDeposited: string
  totalWithdrawn: string
}

export interface UserDetail extends User {
  holdings: {
    deposits: { vaultAddress: string; _sum: { assetAmount: string }; _count: number }[]
    withdrawals: { vaultAddress: string; _sum: { assetsEstimate: string }; _count: number }[]
  }
}

export interface Deposit {
  id: string
  vaultAddress: string
  vaultName: string
  userAddress: string
  senderAddress: string
  assetAmount: string
  shares: string
  partnerId?: number
  sweptAt: string | null
  txHash: string
  blockNumber: string
  logIndex: number
  timestamp: string
}

export interface Withdrawal {
  id: string
  vaultAddress: string
  vaultName: string
  userAddress: string
  receiverAddress: string
  requestIndex: string
  shares: string
  assetsEstimate: string
  status: "queued" | "claimed" | "cancelled" | "expired"
  claimable: boolean
  assetsClaimable: string
  assetsClaimed: string
  partnerId?: number
  requestedAt: string
  expiresAt: string | null
  fundedAt: string | null
  claimedAt: string | null
  cancelledAt: string | null
  expiredAt: string | null
  txHash: string
  blockNumber: string
  logIndex: number
  timestamp: string
}

export interface Meta {
  page: number
  pageSize: number
  total: number
  totalPages: number
  hasNextPage: boolean
}

export interface DepositGroup {
  vaultAddress: string
  vaultName: string
  deposits: Deposit[]
  count: number
  truncated?: true
}

export interface Settlement {
  vaultAddress: string
  vaultName: string
  depositsToSweep: { count: number; totalAmount: string }
  withdrawalsToFund: { count: number; totalAmount: string }
}

export interface Status {
  chainId: number
  chainState: "following" | "backfilling" | "frozen" | "unknown"
  frozenReason: string | null
  generation: number | null
  seq: number | null
  indexedBlock: string | null
  indexedAt: string | null
  headBlock: string | null
  finalBlock: string | null
  provenTo: string | null
  lagBlocks: number | null
  lagSeconds: number | null
  etaSeconds: number | null
  firstSync: { generation: number; seq: number; recordsLeft: number; etaSeconds: number | null; phase: "facts" | "deriving" } | null
  programs: Record<string, string>
  vaults: { address: string; name: string; lastNavAt: string | null; state: string }[]
}

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
