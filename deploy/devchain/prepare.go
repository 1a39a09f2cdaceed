package devchain

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// The preconditions of actions. Each is read from the chain first, and a transaction is only sent if it is not met.

// maxUint256 is an unlimited allowance.
var maxUint256 = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))

// amount draws a deposit between 10 and 99,999 units of the asset; small ones are as frequent as large ones.
func (s *Scenario) amount() *big.Int {
	whole := (1 + s.rng.Int64N(9)) * []int64{10, 100, 1000, 10_000}[s.rng.IntN(4)]
	return big.NewInt(whole*1_000_000 + s.rng.Int64N(1_000_000))
}

// partner draws the partner of a user, usually the same one. It returns false if the scenario has no partners.
func (s *Scenario) partner(u account) (uint32, bool) {
	if len(s.partners) == 0 {
		return 0, false
	}
	usual := int(u.address[0])
	if s.rng.IntN(5) == 0 {
		usual = s.rng.IntN(len(s.partners))
	}
	return s.partners[usual%len(s.partners)], true
}

// holder draws a user who has shares of the vault, and returns their number, or 0 if no user has any.
func (s *Scenario) holder(ctx context.Context, v *vault) (account, *big.Int, error) {
	for _, i := range s.rng.Perm(len(s.users)) {
		shares, err := read[*big.Int](ctx, v.Contract, "balanceOf", s.users[i].address)
		if err != nil {
			return account{}, nil, err
		}
		if shares.Sign() > 0 {
			return s.users[i], shares, nil
		}
	}
	return account{}, new(big.Int), nil
}

// supply gives an account enough of the vault's asset, and approves the spender for it.
func (s *Scenario) supply(ctx context.Context, v *vault, a account, spender common.Address, amount *big.Int) error {
	balance, err := read[*big.Int](ctx, v.asset, "balanceOf", a.address)
	if err != nil {
		return err
	}
	if balance.Cmp(amount) < 0 {
		more := new(big.Int).Mul(amount, big.NewInt(20)) // enough for some more steps
		if _, err := s.chain.send(ctx, a, v.asset.call("mint", a.address, more)); err != nil {
			return fmt.Errorf("mint %s assets to %s: %w", more, a.address, err)
		}
	}
	return s.approve(ctx, v.asset, a, spender, amount)
}

// approve lets the spender take the account's assets or shares.
func (s *Scenario) approve(ctx context.Context, token *Contract, a account, spender common.Address,
	amount *big.Int) error {
	allowed, err := read[*big.Int](ctx, token, "allowance", a.address, spender)
	if err != nil {
		return err
	}
	if allowed.Cmp(amount) >= 0 {
		return nil
	}
	if _, err := s.chain.send(ctx, a, token.call("approve", spender, maxUint256)); err != nil {
		return fmt.Errorf("approve %s for %s: %w", spender, a.address, err)
	}
	return nil
}

func (s *Scenario) activatePartner(ctx context.Context, partner uint32) error {
	if active, err := read[bool](ctx, s.router, "isPartnerActive", partner); err != nil || active {
		return err
	}
	if _, err := s.chain.send(ctx, owner, s.router.call("setPartnerStatus", partner, true)); err != nil {
		return fmt.Errorf("activate partner %d in the router: %w", partner, err)
	}
	return nil
}

func (s *Scenario) setRequestTTL(ctx context.Context, v *vault, ttl time.Duration) error {
	wanted := uint64(ttl / time.Second)
	if seconds, err := read[uint64](ctx, v.Contract, "requestTtl"); err != nil || seconds == wanted {
		return err
	}
	if _, err := s.chain.send(ctx, owner, v.call("setRequestTtl", wanted)); err != nil {
		return fmt.Errorf("set the life of requests to %d s: %w", wanted, err)
	}
	return nil
}
