package devchain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// Contracts lists what Deploy created on a development chain.
type Contracts struct {
	ChainID uint64         `json:"chainId"`
	Router  common.Address `json:"router"`
	Vaults  []Vault        `json:"vaults"`
}

// Vault is one reference vault. StartBlock is the block that created it.
type Vault struct {
	Address    common.Address `json:"address"`
	Name       string         `json:"name"`
	Symbol     string         `json:"symbol"`
	Asset      common.Address `json:"asset"`
	StartBlock uint64         `json:"startBlock"`
}

// The assets and vaults of a development chain. All have 6 decimals, so that sums over vaults are meaningful.
const assetDecimals = 6

var (
	assets = []struct{ name, symbol string }{{"Development Dollar", "DUSD"}, {"Development Euro", "DEUR"}}
	vaults = []struct {
		name, symbol string
		asset        int
	}{
		{"Dollar Treasury Vault", "vTREAS", 0},
		{"Dollar Credit Vault", "vCREDIT", 0},
		{"Euro Treasury Vault", "vEURO", 1},
	}
)

// Deploy creates two mock assets, three vaults and a router that is approved for them on the development chain. Every
// call deploys new ones, so the caller keeps the result and passes it to New.
func Deploy(ctx context.Context, rpcURL string) (*Contracts, error) {
	deployed, err := deploy(ctx, rpcURL)
	return deployed, contracts.Discreet(err, rpcURL)
}

func deploy(ctx context.Context, rpcURL string) (*Contracts, error) {
	c, err := dial(ctx, rpcURL)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deployed := &Contracts{ChainID: c.id.Uint64()}

	assetAddresses := make([]common.Address, len(assets))
	for i, a := range assets {
		asset, _, err := c.create(ctx, owner, "MockAsset", a.name, a.symbol, uint8(assetDecimals))
		if err != nil {
			return nil, err
		}
		assetAddresses[i] = asset.address
	}

	router, _, err := c.create(ctx, owner, "ReferenceDepositRouter")
	if err != nil {
		return nil, err
	}
	deployed.Router = router.address

	for _, v := range vaults {
		asset := assetAddresses[v.asset]
		vault, receipt, err := c.create(ctx, owner, "ReferenceVault", v.name, v.symbol, asset, oracle.address,
			manager.address, custodian.address)
		if err != nil {
			return nil, err
		}
		if _, err := c.send(ctx, owner, router.call("setVaultAllowed", vault.address, true)); err != nil {
			return nil, fmt.Errorf("allow the vault %s in the router: %w", v.symbol, err)
		}
		deployed.Vaults = append(deployed.Vaults, Vault{
			Address: vault.address, Name: v.name, Symbol: v.symbol, Asset: asset, StartBlock: receipt.BlockNumber.Uint64(),
		})
	}
	return deployed, nil
}
