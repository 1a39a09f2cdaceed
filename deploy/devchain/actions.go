package devchain

import (
	"context"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// action is something that can happen in a vault. do returns false if the action is not possible at the moment.
type action struct {
	name   string
	weight int
	do     func(s *Scenario, ctx context.Context, v *vault) (done bool, err error)
}

// via is the way in which a user calls a vault.
type via int

const (
	viaVault    via = iota // the vault itself, no partner
	viaReferral            // the vault's referral overload
	viaRouter              // the router
)

var (
	depositPlain    = action{"a plain deposit", 16, deposit(viaVault)}
	depositReferral = action{"a referral deposit", 8, deposit(viaReferral)}
	depositRouted   = action{"a routed deposit", 16, deposit(viaRouter)}
	navUpdate       = action{"a NAV update", 10, updateNav}
	sweepAll        = action{"a sweep", 4, sweep(false)}
	sweepSome       = action{"a partial sweep", 5, sweep(true)}
	requestPlain    = action{"a plain request", 5, requestWithdrawal(viaVault, 0)}
	requestReferral = action{"a referral request", 4, requestWithdrawal(viaReferral, 0)}
	requestRouted   = action{"a routed request", 5, requestWithdrawal(viaRouter, 0)}
	requestExpiring = action{"an expiring request", 3, requestWithdrawal(viaVault, requestTTL)}
	requestBoth     = action{"an expiring referral request", 3, requestWithdrawal(viaReferral, requestTTL)}
	settlement      = action{"a settlement", 8, settle}
	claiming        = action{"a claim", 16, claim}
	cancellation    = action{"a cancellation", 3, cancel}
	expiry          = action{"an expiry", 6, expire}
)

var table = []action{
	depositPlain, depositReferral, depositRouted, navUpdate, sweepAll, sweepSome, requestPlain, requestReferral,
	requestRouted,
	requestExpiring, requestBoth, settlement, claiming, cancellation, expiry,
}

// scripted is one of the first actions, in one of the vaults.
type scripted struct {
	action
	vault int
}

// firstActions makes every kind of event, through every way of calling.
var firstActions = []scripted{
	{depositPlain, 0}, {depositRouted, 0}, {depositReferral, 1}, {depositPlain, 2}, {depositRouted, 1}, {navUpdate, 0},
	{navUpdate, 1}, {sweepSome, 0}, {sweepAll, 1}, {depositPlain, 0}, {sweepAll, 0}, {navUpdate, 2},
	{requestPlain, 0}, {requestReferral, 0}, {requestRouted, 1}, {requestExpiring, 2}, {settlement, 0}, {claiming, 0},
	{cancellation, 1}, {requestBoth, 1}, {expiry, 2}, {depositRouted, 2}, {requestRouted, 2}, {settlement, 2},
}

const (
	// requestTTL is the lifetime of an expiring request: short, so that requests do expire.
	requestTTL = time.Minute
	// expiryMargin keeps actions away from requests that may expire before the next block.
	expiryMargin = 20 * time.Second
)

func deposit(way via) func(*Scenario, context.Context, *vault) (bool, error) {
	return func(s *Scenario, ctx context.Context, v *vault) (bool, error) {
		payer := s.user()
		receiver := s.receiver(payer)
		amount := s.amount()
		partner, ok := s.partner(payer)
		if !ok && way != viaVault {
			return false, nil
		}
		spender := v.Address
		if way == viaRouter {
			spender = s.contracts.Router
			if err := s.activatePartner(ctx, partner); err != nil {
				return false, err
			}
		}
		if err := s.supply(ctx, v, payer, spender, amount); err != nil {
			return false, err
		}
		expected, err := read[*big.Int](ctx, v.Contract, "previewDeposit", amount)
		if err != nil {
			return false, err
		}
		switch way {
		case viaRouter:
			return s.sent(ctx, payer, s.router.call("deposit", v.Address, amount, percent(expected, 99), receiver, partner))
		case viaReferral:
			return s.sent(ctx, payer, v.call("deposit0", amount, receiver, partner))
		default:
			return s.sent(ctx, payer, v.call("deposit", amount, receiver))
		}
	}
}

// updateNav changes the value of the vault by -0.2 % to +0.3 %.
func updateNav(s *Scenario, ctx context.Context, v *vault) (bool, error) {
	total, err := read[*big.Int](ctx, v.Contract, "totalAssets")
	if err != nil || total.Sign() == 0 {
		return false, err
	}
	change := new(big.Int).Mul(total, big.NewInt(s.rng.Int64N(501)-200))
	total.Add(total, change.Quo(change, big.NewInt(100_000)))
	return s.sent(ctx, oracle, v.call("updateNav", total))
}

// sweep moves the unswept deposits, or only the older part of them, to the custodian.
func sweep(partly bool) func(*Scenario, context.Context, *vault) (bool, error) {
	return func(s *Scenario, ctx context.Context, v *vault) (bool, error) {
		swept, err := read[*big.Int](ctx, v.Contract, "sweptTo")
		if err != nil {
			return false, err
		}
		count, err := read[*big.Int](ctx, v.Contract, "depositCount")
		if err != nil {
			return false, err
		}
		unswept := new(big.Int).Sub(count, swept).Int64()
		to := count
		if partly {
			unswept-- // one stays unswept
			if unswept > 0 {
				to = swept.Add(swept, big.NewInt(1+s.rng.Int64N(unswept)))
			}
		}
		if unswept < 1 {
			return false, nil
		}
		return s.sent(ctx, manager, v.call("sweepDeposits", to))
	}
}

func requestWithdrawal(way via, ttl time.Duration) func(*Scenario, context.Context, *vault) (bool, error) {
	return func(s *Scenario, ctx context.Context, v *vault) (bool, error) {
		holder, shares, err := s.holder(ctx, v)
		if err != nil || shares.Sign() == 0 {
			return false, err
		}
		shares = percent(shares, 5+s.rng.Int64N(56))
		receiver := s.receiver(holder)
		partner, ok := s.partner(holder)
		if shares.Sign() == 0 || (!ok && way != viaVault) {
			return false, nil
		}
		if err := s.setRequestTTL(ctx, v, ttl); err != nil {
			return false, err
		}
		if way == viaRouter {
			if err := s.activatePartner(ctx, partner); err != nil {
				return false, err
			}
			if err := s.approve(ctx, v.Contract, holder, s.contracts.Router, shares); err != nil {
				return false, err
			}
		}
		switch way {
		case viaRouter:
			return s.sent(ctx, holder, s.router.call("requestWithdrawal", v.Address, shares, receiver, partner))
		case viaReferral:
			return s.sent(ctx, holder, v.call("requestWithdrawal0", shares, receiver, partner))
		default:
			return s.sent(ctx, holder, v.call("requestWithdrawal", shares, receiver))
		}
	}
}

// settle funds some of the open requests; older ones are more likely.
func settle(s *Scenario, ctx context.Context, v *vault) (bool, error) {
	open, err := s.unexpired(ctx, v)
	if err != nil || len(open) == 0 {
		return false, err
	}
	var indexes []*big.Int
	shares := new(big.Int)
	for i, r := range open {
		if i == 0 || s.rng.IntN(3) > 0 {
			indexes = append(indexes, r.index)
			shares.Add(shares, r.Shares)
		}
	}
	worth, err := read[*big.Int](ctx, v.Contract, "convertToAssets", shares)
	if err != nil {
		return false, err
	}
	if err := s.supply(ctx, v, manager, v.Address, worth); err != nil {
		return false, err
	}
	return s.sent(ctx, manager, v.call("settleWithdrawals", indexes))
}

func claim(s *Scenario, ctx context.Context, v *vault) (bool, error) {
	funded, err := v.requests(ctx, statusFunded)
	if err != nil {
		return false, err
	}
	return s.byItsOwner(ctx, v, "claimWithdrawal", funded)
}

func cancel(s *Scenario, ctx context.Context, v *vault) (bool, error) {
	open, err := s.unexpired(ctx, v)
	if err != nil {
		return false, err
	}
	return s.byItsOwner(ctx, v, "cancelWithdrawal", open)
}

// expire closes a request that has passed its expiry. Steps advances the chain's time to it; Run waits for it.
func expire(s *Scenario, ctx context.Context, v *vault) (bool, error) {
	pending, err := v.requests(ctx, statusPending)
	if err != nil {
		return false, err
	}
	now, err := s.chain.now(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range pending {
		if r.ExpiresAt == 0 || (r.ExpiresAt > now && s.chain.blockTime == 0) {
			continue
		}
		if r.ExpiresAt > now {
			if err := s.chain.jumpTo(ctx, r.ExpiresAt); err != nil {
				return false, err
			}
		}
		return s.sent(ctx, s.user(), v.call("expireWithdrawal", r.index))
	}
	return false, nil
}

// unexpired returns the pending requests that will still be pending in the next block.
func (s *Scenario) unexpired(ctx context.Context, v *vault) ([]request, error) {
	pending, err := v.requests(ctx, statusPending)
	if err != nil {
		return nil, err
	}
	now, err := s.chain.now(ctx)
	if err != nil {
		return nil, err
	}
	var open []request
	for _, r := range pending {
		if r.ExpiresAt == 0 || r.ExpiresAt > now+uint64(expiryMargin/time.Second) {
			open = append(open, r)
		}
	}
	return open, nil
}

// byItsOwner calls a method of the vault for one of the requests, as the user who owns it. Requests of other accounts
// stay as they are.
func (s *Scenario) byItsOwner(ctx context.Context, v *vault, method string, from []request) (bool, error) {
	var ours []request
	for _, r := range from {
		if _, known := s.byAddress[r.Owner]; known {
			ours = append(ours, r)
		}
	}
	if len(ours) == 0 {
		return false, nil
	}
	r := ours[s.rng.IntN(len(ours))]
	return s.sent(ctx, s.byAddress[r.Owner], v.call(method, r.index))
}

// sent sends the transaction that is the action itself.
func (s *Scenario) sent(ctx context.Context, from account, call transaction) (bool, error) {
	_, err := s.chain.send(ctx, from, call)
	return err == nil, err
}

// percent returns p percent of v, rounded down.
func percent(v *big.Int, p int64) *big.Int {
	v = new(big.Int).Mul(v, big.NewInt(p))
	return v.Quo(v, big.NewInt(100))
}

// user draws a user; low numbers are more frequent, so some users have many deposits.
func (s *Scenario) user() account {
	return s.users[min(s.rng.IntN(len(s.users)), s.rng.IntN(len(s.users)))]
}

// receiver is usually the user, and one time in eight another account.
func (s *Scenario) receiver(u account) common.Address {
	if s.rng.IntN(8) == 0 {
		return s.user().address
	}
	return u.address
}
