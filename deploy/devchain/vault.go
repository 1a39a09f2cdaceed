package devchain

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// vault is a deployed vault that can be called.
type vault struct {
	Vault
	*Contract
	asset *Contract
}

func bindVault(ctx context.Context, c *chain, v Vault) (*vault, error) {
	code, err := c.CodeAt(ctx, v.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("read the code of the vault %s: %w", v.Address, err)
	}
	if len(code) == 0 {
		return nil, fmt.Errorf("the chain has no contract at the vault address %s: it is another chain than the one "+
			"deployed to, deploy again", v.Address)
	}
	return &vault{v, At(c, "ReferenceVault", v.Address), At(c, "MockAsset", v.Asset)}, nil
}

// Request is a withdrawal request as the vault stores it.
type Request struct {
	Owner          common.Address
	ExpiresAt      uint64
	PartnerID      uint32
	Receiver       common.Address
	Status         uint8
	Shares         *big.Int
	AssetsEstimate *big.Int
	Assets         *big.Int
}

// request is the current state of a withdrawal request in the vault.
type request struct {
	index *big.Int
	Request
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
	count, err := read[*big.Int](ctx, v.Contract, "requestCount")
	if err != nil {
		return nil, err
	}
	first := max(0, count.Int64()-recentRequests)
	page, err := read[[]Request](ctx, v.Contract, "requests", big.NewInt(first), big.NewInt(recentRequests))
	if err != nil {
		return nil, err
	}
	var found []request
	for i, r := range page {
		if r.Status == status {
			found = append(found, request{big.NewInt(first + int64(i)), r})
		}
	}
	return found, nil
}
