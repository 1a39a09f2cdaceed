// Package navs is what one NAV update of a vault looks like, in rows and in answers, and
// how the one in force is found: vaults list them, and a series is made of them.
package navs

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

//go:embed newest.sql
var sqlNewest string

// Nav is one NAV update as the questions give it: the price of a share with 18 decimals,
// assets and shares in native units, the time in Unix seconds.
type Nav struct {
	NavPerShare *big.Int `ch:"nav_per_share"`
	TotalAssets *big.Int `ch:"total_assets"`
	TotalSupply *big.Int `ch:"total_supply"`
	Block       uint64   `ch:"block"`
	Time        uint32   `ch:"ts"`
	Tx          string   `ch:"tx"`
	LogIndex    uint32   `ch:"log_index"`
}

// JSON is NavHistory of the OpenAPI document.
type JSON struct {
	ID           string `json:"id"`
	VaultAddress string `json:"vaultAddress"`
	VaultName    string `json:"vaultName"`
	NavPerShare  string `json:"navPerShare"`
	TotalAssets  string `json:"totalAssets"`
	TotalSupply  string `json:"totalSupply"`
	Timestamp    string `json:"timestamp"`
	BlockNumber  string `json:"blockNumber"`
	TxHash       string `json:"txHash"`
	LogIndex     uint32 `json:"logIndex"`
}

// Newest is the newest NAV of a vault whose block's time is not after one, in Unix
// seconds; nil for none. The error is a *pin.Error.
func Newest(ctx context.Context, p *pin.Pin, vault common.Address, at int64) (*Nav, error) {
	n, ok, err := pin.AskOne[Nav](ctx, p, sqlNewest, pin.Args{"vault": vault, "at": at})
	if err != nil || !ok {
		return nil, err
	}
	return &n, nil
}

// JSON is the update in an answer about its vault.
func (n *Nav) JSON(v *pin.Vault) JSON {
	tx := httpapi.ToHash(n.Tx)
	return JSON{
		ID: httpapi.LogID(tx, n.LogIndex), VaultAddress: v.Written, VaultName: v.Name,
		NavPerShare: n.NavPerShare.String(), TotalAssets: n.TotalAssets.String(), TotalSupply: n.TotalSupply.String(),
		Timestamp: httpapi.Time(uint64(n.Time)), BlockNumber: httpapi.Decimal(n.Block), TxHash: tx, LogIndex: n.LogIndex,
	}
}
