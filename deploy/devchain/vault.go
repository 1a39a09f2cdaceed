package devchain

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi/bind"

	"github.com/navlog/navlog/deploy/devchain/reference"
)

// vault is a deployed vault that can be called.
type vault struct {
	Vault
	*reference.ReferenceVault
	asset *reference.MockAsset
}

func bindVault(ctx context.Context, c *chain, v Vault) (*vault, error) {
	code, err := c.CodeAt(ctx, v.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("read the code of the vault %s: %w", v.Address, err)
	}
	if len(code) == 0 {
		return nil, fmt.Errorf("the chain has no contract at the vault address %s: it is another chain than the one deployed to, deploy again", v.Address)
	}
	contract, err := reference.NewReferenceVault(v.Address, c)
	if err != nil {
		return nil, fmt.Errorf("bind the vault %s: %w", v.Address, err)
	}
	asset, err := reference.NewMockAsset(v.Asset, c)
	if err != nil {
		return nil, fmt.Errorf("bind the asset %s: %w", v.Asset, err)
	}
	return &vault{v, contract, asset}, nil
}

// request is the current state of a withdrawal request in the vault.
type request struct {
	index *big.Int
	reference.ReferenceVaultRequest
}

// The Status of a request, in the order of the contract's enum.
const (
	statusPending = iota
	statusFunded
	statusClaimed
	statusCancelled
	statusExpired
)

// recentRequests is how many requests the scenario looks back for something to do. It claims and settles faster than it
// requests, so the number of open requests does not grow.
const recentRequests = 64

// requests returns the newest requests with the status, oldest first.
func (v *vault) requests(ctx context.Context, status uint8) ([]request, error) {
	call := &bind.CallOpts{Context: ctx}
	count, err := v.RequestCount(call)
	if err != nil {
		return nil, fmt.Errorf("read the number of requests: %w", err)
	}
	first := max(0, count.Int64()-recentRequests)
	page, err := v.Requests(call, big.NewInt(first), big.NewInt(recentRequests))
	if err != nil {
		return nil, fmt.Errorf("read the requests from %d on: %w", first, err)
	}
	var found []request
	for i, r := range page {
		if r.Status == status {
			found = append(found, request{big.NewInt(first + int64(i)), r})
		}
	}
	return found, nil
}
