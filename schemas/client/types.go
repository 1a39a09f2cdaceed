package client

import (
	"encoding/json"
	"time"
)

// Types of responses, with the names that schemas/openapi gives them. Decimal numbers are strings. A nil pointer is
// null: unknown or absent.

// Meta is the position of a page in its list. Each kind of list has some of the fields:
//
//	lists with numbered pages             Page, PageSize, Total, TotalPages, HasNextPage
//	/events and /vaults/{address}/events  PageSize, Next, HasNextPage
//	/partner/events                       Next, HasMore
//	/reorganisations                      Total
type Meta struct {
	Page        int    `json:"page"` // from 1
	PageSize    int    `json:"pageSize"`
	Total       int64  `json:"total"` // entries on all pages
	TotalPages  int64  `json:"totalPages"`
	HasNextPage bool   `json:"hasNextPage"`
	Next        Cursor `json:"next"`
	HasMore     bool   `json:"hasMore"`
}

// Cursor is the parameter that requests the next page of a list without numbered pages: before for /events, after for
// /partner/events. It is empty at the end of /events.
type Cursor string

// UnmarshalJSON accepts the text of /events and the number of /partner/events.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	if b[0] == '"' || b[0] == 'n' { // null leaves it empty
		return json.Unmarshal(b, (*string)(c))
	}
	return json.Unmarshal(b, (*json.Number)(c))
}

// Token is the asset of a vault.
type Token struct {
	Address  string `json:"address"`
	Symbol   string `json:"symbol"`
	Decimals int    `json:"decimals"`
}

// Vault is a vault in /vaults. Amounts are in native units, NavPerShare has 18 decimals.
type Vault struct {
	Address      string     `json:"address"`
	Name         string     `json:"name"`
	Symbol       string     `json:"symbol"`
	ChainID      int64      `json:"chainId"`
	Decimals     int        `json:"decimals"`
	Asset        Token      `json:"asset"`
	TotalAssets  *string    `json:"totalAssets"`
	TotalSupply  *string    `json:"totalSupply"`
	NavPerShare  *string    `json:"navPerShare"`
	NavUpdatedAt *time.Time `json:"navUpdatedAt"`
	StartBlock   string     `json:"startBlock"`
}

// User is a user in /users.
type User struct {
	Address        string    `json:"address"`
	FirstSeen      time.Time `json:"firstSeen"`
	TotalDeposited string    `json:"totalDeposited"`
	TotalWithdrawn string    `json:"totalWithdrawn"`
}

// PartnerStats is /partner/stats, without the numbers by vault.
type PartnerStats struct {
	PartnerID     uint32 `json:"partnerId"`
	PartnerName   string `json:"partnerName"`
	TotalDeposits int64  `json:"totalDeposits"`
	TotalVolume   string `json:"totalVolume"`
	UniqueUsers   int64  `json:"uniqueUsers"`
}

// ExplainedEvent is a log, or a NAV sample, that is a part of a number (/explain).
type ExplainedEvent struct {
	ID             string    `json:"id"`
	Seq            string    `json:"seq"`
	Kind           string    `json:"kind"`
	VaultAddress   string    `json:"vaultAddress"`
	UserAddress    *string   `json:"userAddress"`
	BlockNumber    string    `json:"blockNumber"`
	LogIndex       *uint32   `json:"logIndex"` // nil for a sample
	Timestamp      time.Time `json:"timestamp"`
	TxHash         *string   `json:"txHash"` // nil for a sample
	State          string    `json:"state"`  // live or retracted
	RetractedBySeq *string   `json:"retractedBySeq"`
	Change         string    `json:"change"` // this log's change of the number
	Sum            string    `json:"sum"`    // the number after this log
	Unproven       *string   `json:"unproven"`
}

// Status is /status.
type Status struct {
	ChainID      int64      `json:"chainId"`
	ChainState   string     `json:"chainState"` // the worst of all parts
	ChainReason  *string    `json:"chainReason"`
	FrozenReason *string    `json:"frozenReason"`
	HeadBlock    *string    `json:"headBlock"`
	IndexedBlock *string    `json:"indexedBlock"`
	IndexedAt    *time.Time `json:"indexedAt"`
	FinalBlock   *string    `json:"finalBlock"`
	ProvenTo     *string    `json:"provenTo"`
	// LogsWithoutData counts the logs for which only the length and the hash of the data are stored.
	LogsWithoutData *int              `json:"logsWithoutData"`
	LagBlocks       *int              `json:"lagBlocks"`
	LagSeconds      *int              `json:"lagSeconds"`
	EtaSeconds      *int              `json:"etaSeconds"`
	Generation      *int              `json:"generation"`
	Seq             *int              `json:"seq"`
	Endpoints       []EndpointUse     `json:"endpoints"`
	Programs        map[string]string `json:"programs"` // state by program
	Vaults          []VaultStatus     `json:"vaults"`
}

// EndpointUse counts the requests to a node.
type EndpointUse struct {
	Calls int `json:"calls"`
	Units int `json:"units"`
}

// VaultStatus is the state of a vault.
type VaultStatus struct {
	Address   string     `json:"address"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	LastNavAt *time.Time `json:"lastNavAt"`
	Warnings  []string   `json:"warnings"`
}
