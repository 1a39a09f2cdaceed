// The types of the API's answers that the pages use. openapi.ts is generated from schemas/openapi/openapi.yaml by
// `make web`; here its schemas get the names that the pages use.
import type { components } from "./openapi"

type Schemas = components["schemas"]

export type Token = Schemas["Token"]
export type Vault = Schemas["Vault"]
export type VaultDetail = Schemas["VaultDetail"]
export type Nav = Schemas["NavHistory"]
export type User = Schemas["User"]
export type VaultUser = Schemas["VaultUser"]
export type UserDetail = Schemas["UserWithHoldings"]
export type Deposit = Schemas["Deposit"]
export type Withdrawal = Schemas["WithdrawalRequest"]
export type Meta = Schemas["PaginationMeta"]
export type Status = Schemas["Status"]
export type Uptime = Schemas["Uptime"]
export type Explorer = Schemas["Explorer"]
export type Webhook = Schemas["Webhook"]
export type Certificates = Schemas["Certificates"]
export type URLCertificates = Schemas["URLCertificates"]
export type Delivery = Schemas["Delivery"]
export type EndpointDay = Schemas["EndpointDay"]
export type Attempt = Schemas["Attempt"]
export type DeliveryDetail = Schemas["DeliveryDetail"]
export type Settlement = Schemas["SettlementEntry"]
export type Funding = Schemas["Funding"]

/** A decoded log. Fields that a kind does not use are null. */
export type ChainEvent = Schemas["ChainEvent"]
export type CursorMeta = Schemas["CursorMeta"]
/** The events that make up a number. */
export type Explanation = Schemas["Explanation"]
/** The requested number: the path of an answer, and a pointer into it. */
export type Question = Pick<Explanation, "of" | "field">
export type ExplainedEvent = Schemas["ExplainedEvent"]
export type Proof = Schemas["Proof"]
export type Series = Schemas["Series"]
