package devchain

import (
	"context"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// turnFunc is what a user or the manager does in a turn.
type turnFunc = func(ctx context.Context, p *Play, who account) error

// argsFunc returns the arguments of a call in addition to its amount.
type argsFunc = func(p *Play, who account) []any

// calling returns a turn in which a user calls one of the vault's contracts with a random amount and further arguments.
func calling(role, method string, arguments argsFunc) turnFunc {
	return func(ctx context.Context, p *Play, who account) error {
		return p.send(ctx, who, p.at[role], method, append([]any{p.amount()}, arguments(p, who)...)...)
	}
}

// callWithPart returns a turn in which a user calls one of the vault's contracts with a part of their amount according
// to the vault's function of.
func callWithPart(of, role, method string, arguments argsFunc) turnFunc {
	return func(ctx context.Context, p *Play, who account) error {
		some, err := p.some(ctx, of, who.address)
		if err != nil {
			return err
		}
		return p.send(ctx, who, p.at[role], method, append([]any{some}, arguments(p, who)...)...)
	}
}

// callWithoutAmount returns a turn in which a user calls the vault without an amount.
func callWithoutAmount(method string) turnFunc {
	return func(ctx context.Context, p *Play, who account) error { return p.send(ctx, who, p.at["vault"], method) }
}

func none(*Play, account) []any { return nil }

func self(_ *Play, who account) []any { return []any{who.address} }

// toReceiver returns the receiver as arguments: usually the user, sometimes another one.
func toReceiver(p *Play, who account) []any {
	if p.rng.IntN(5) == 0 {
		who = p.users[p.rng.IntN(len(p.users))]
	}
	return []any{who.address}
}

// referral returns the address that a deposit names as its referral: zero if it names none.
func (p *Play) referral() common.Address {
	return []common.Address{{}, custodian.address}[p.rng.IntN(2)]
}

// gain mints up to 0.1 % more assets for the vault. A fixed amount would raise the price of a share without limit while
// few shares are left.
func gain(ctx context.Context, p *Play, _ account) error {
	total, err := read[*big.Int](ctx, p.at["vault"], "totalAssets")
	if err != nil {
		return err
	}
	gained := new(big.Int).Quo(new(big.Int).Mul(total, big.NewInt(p.rng.Int64N(1001))), big.NewInt(1_000_000))
	return p.send(ctx, p.manager, p.at["asset"], "mint", p.Sources["vault"], gained.Add(gained, common.Big1))
}

var plainTurns = []turn{
	{5, calling("vault", "deposit", toReceiver)},
	{3, callWithPart("balanceOf", "vault", "redeem",
		func(p *Play, who account) []any { return append(toReceiver(p, who), who.address) })},
	{1, gain},
}

var redeemTurns = []turn{
	{4, calling("vault", "deposit", toReceiver)},
	{4, callWithPart("balanceOf", "vault", "requestRedeem",
		func(_ *Play, who account) []any { return []any{who.address, who.address} })},
	{3, func(ctx context.Context, p *Play, who account) error {
		some, err := p.some(ctx, "pending", who.address)
		if err != nil {
			return err
		}
		return p.send(ctx, p.manager, p.at["vault"], "fulfill", who.address, some)
	}},
	{5, callWithPart("claimable", "vault", "redeem", toReceiver)},
}

var lagoonTurns = []turn{
	{6, calling("vault", "requestDeposit", func(p *Play, who account) []any { return []any{who.address, p.referral()} })},
	{2, callWithoutAmount("cancelRequestDeposit")},
	{4, callWithPart("claimableDepositRequest", "vault", "deposit", self)},
	{5, callWithPart("balanceOf", "vault", "requestRedeem", self)},
	{2, callWithoutAmount("cancelRequestRedeem")},
	{5, callWithPart("claimableRedeemRequest", "vault", "redeem", toReceiver)},
	{1, calling("vault", "syncDeposit",
		func(p *Play, who account) []any { return append(toReceiver(p, who), p.referral()) })},
	{1, callWithPart("balanceOf", "vault", "syncRedeem", toReceiver)},
	{3, valued("updateNewTotalAssets")},
	{3, valued("settle")},
}

// valued returns a turn in which the manager changes the vault's value by -1 % to +2 %. If it rises, the vault gets the
// difference.
func valued(method string) turnFunc {
	return func(ctx context.Context, p *Play, _ account) error {
		total, err := read[*big.Int](ctx, p.at["vault"], "totalAssets")
		if err != nil {
			return err
		}
		change := new(big.Int).Quo(new(big.Int).Mul(total, big.NewInt(p.rng.Int64N(301)-100)), big.NewInt(10_000))
		if change.Sign() > 0 {
			if err := p.send(ctx, p.manager, p.at["asset"], "mint", p.Sources["vault"], change); err != nil {
				return err
			}
		}
		return p.send(ctx, p.manager, p.at["vault"], method, total.Add(total, change))
	}
}

var yoTurns = []turn{
	{3, calling("vault", "deposit", toReceiver)},
	{3, func(ctx context.Context, p *Play, who account) error {
		return p.send(ctx, who, p.at["gateway"], "deposit", p.Sources["vault"], p.amount(), who.address,
			uint32(7+p.rng.IntN(3)))
	}},
	{3, callWithPart("balanceOf", "vault", "requestRedeem", func(p *Play, who account) []any {
		return append(toReceiver(p, who), who.address, p.rng.IntN(3) == 0)
	})},
	{2, func(ctx context.Context, p *Play, who account) error {
		some, err := p.some(ctx, "balanceOf", who.address)
		if err != nil {
			return err
		}
		return p.send(ctx, who, p.at["gateway"], "redeem", p.Sources["vault"], some, who.address, uint32(7+p.rng.IntN(3)),
			p.rng.IntN(3) == 0)
	}},
	{4, owed("fulfillRedeem")},
	{1, owed("cancelRedeem")},
}

// owed returns a turn in which the manager fulfils or cancels a part of what a receiver is owed.
func owed(method string) turnFunc {
	return func(ctx context.Context, p *Play, who account) error {
		shares, err := p.Number(ctx, "owedShares", who.address)
		if err != nil {
			return err
		}
		some, err := p.some(ctx, "owedShares", who.address)
		if err != nil {
			return err
		}
		assets, err := p.Number(ctx, "owedAssets", who.address)
		if err != nil {
			return err
		}
		assets.Quo(assets.Mul(assets, some), shares)
		return p.send(ctx, p.manager, p.at["vault"], method, who.address, some, assets)
	}
}

var vedaTurns = []turn{
	{4, calling("teller", "deposit", none)},
	{3, calling("teller", "depositReferred", func(p *Play, _ account) []any { return []any{p.referral()} })},
	{2, calling("teller", "bulkDeposit", toReceiver)},
	{2, callWithPart("balanceOf", "teller", "withdraw", toReceiver)},
	{4, callWithPart("balanceOf", "queue", "requestOnChainWithdraw", func(p *Play, _ account) []any {
		return []any{big.NewInt(p.rng.Int64N(60)), big.NewInt(3600 + p.rng.Int64N(86400))} // maturity and deadline
	})},
	{4, func(ctx context.Context, p *Play, who account) error {
		return p.request(ctx, who, "cancelOnChainWithdraw")
	}},
	{3, func(ctx context.Context, p *Play, _ account) error {
		return p.request(ctx, p.manager, "solveOnChainWithdraw")
	}},
	{1, func(ctx context.Context, p *Play, _ account) error {
		rate, err := read[*big.Int](ctx, p.at["accountant"], "rate")
		if err != nil {
			return err
		}
		return p.send(ctx, p.manager, p.at["accountant"], "updateExchangeRate",
			rate.Sub(rate, big.NewInt(p.rng.Int64N(1e14))))
	}},
}

var midasTurns = []turn{
	{3, dollars("depositInstant")},
	{4, dollars("depositRequest")},
	{2, callWithPart("balanceOf", "redemptions", "redeemInstant", toReceiver)},
	{4, callWithPart("balanceOf", "redemptions", "redeemRequest", toReceiver)},
	{3, decided("deposits", "safeBulkApproveRequest")},
	{1, decided("deposits", "approveRequest")},
	{1, decided("deposits", "rejectRequest")},
	{3, decided("redemptions", "safeBulkApproveRequest")},
	{1, decided("redemptions", "approveRequest")},
	{1, decided("redemptions", "rejectRequest")},
	{2, func(ctx context.Context, p *Play, _ account) error {
		answer, err := read[*big.Int](ctx, p.at["feed"], "lastAnswer")
		if err != nil {
			return err
		}
		return p.send(ctx, p.manager, p.at["feed"], "setRoundData",
			answer.Add(answer, big.NewInt(p.rng.Int64N(100_000)-20_000)))
	}},
}

// dollars returns a turn in which a user buys an mToken, through one of two referrers or none.
func dollars(method string) turnFunc {
	return func(ctx context.Context, p *Play, who account) error {
		amount := new(big.Int).Mul(p.amount(), big.NewInt(1e12))
		referrer := common.Hash{31: byte(p.rng.IntN(3))}
		return p.send(ctx, who, p.at["deposits"], method, append([]any{amount, referrer}, toReceiver(p, who)...)...)
	}
}

// decided returns a turn in which the manager approves or rejects one of the newest requests, or approves two of them
// at once. The price uses all of its 18 decimals, and is close to the newest one.
func decided(role, method string) turnFunc {
	return func(ctx context.Context, p *Play, _ account) error {
		next, err := read[*big.Int](ctx, p.at[role], "nextId")
		if err != nil {
			return err
		}
		if next.Sign() == 0 {
			return errors.New("nothing was requested")
		}
		newest := func() *big.Int {
			return new(big.Int).SetInt64(next.Int64() - 1 - p.rng.Int64N(min(next.Int64(), 8)))
		}
		if method == "rejectRequest" {
			return p.send(ctx, p.manager, p.at[role], method, newest())
		}
		price, err := read[*big.Int](ctx, p.at["feed"], "rate")
		if err != nil {
			return err
		}
		price.Add(price, big.NewInt(p.rng.Int64N(2e15)-1e15))
		if method == "approveRequest" {
			return p.send(ctx, p.manager, p.at[role], method, newest(), price)
		}
		ids := []*big.Int{newest()}
		if other := newest(); other.Cmp(ids[0]) != 0 && p.rng.IntN(2) == 0 {
			ids = append(ids, other)
		}
		return p.send(ctx, p.manager, p.at[role], method, ids, price)
	}
}

// request calls the queue for one of the newest requests.
func (p *Play) request(ctx context.Context, who account, method string) error {
	if len(p.requests) == 0 {
		return errors.New("nothing was requested")
	}
	newest := min(len(p.requests), 8)
	return p.send(ctx, who, p.at["queue"], method, p.requests[len(p.requests)-1-p.rng.IntN(newest)])
}
