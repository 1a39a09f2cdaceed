// Package deposits serves deposits: those of a user, of a vault, and through a partner, and the queue of those that
// no sweep has reached.
//
// Each is one list, read newest first up to the end of the page, so that a user with a million deposits costs as
// little as any other. The length of a list comes from running totals. When a deposit was swept is part of its row.
package deposits

import (
	"context"
	_ "embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed user.sql
	sqlUser string
	//go:embed vault.sql
	sqlVault string
	//go:embed partner.sql
	sqlPartner string
	//go:embed voided.sql
	sqlVoided string
)

type depositJSON struct {
	ID            string  `json:"id"`
	VaultAddress  string  `json:"vaultAddress"`
	VaultName     string  `json:"vaultName" file:"foreign"`
	UserAddress   string  `json:"userAddress"`
	SenderAddress *string `json:"senderAddress"` // null if the log does not say it
	AssetAmount   string  `json:"assetAmount"`
	Shares        *string `json:"shares"`
	PartnerID     *uint32 `json:"partnerId,omitempty"`
	SweptAt       *string `json:"sweptAt" file:"time"`
	TxHash        string  `json:"txHash"`
	BlockNumber   string  `json:"blockNumber" file:"number"`
	LogIndex      uint32  `json:"logIndex"`
	Timestamp     string  `json:"timestamp" file:"time"`
}

// deposit is a row of the lists.
type deposit struct {
	ask.Entry
	Vault       common.Address `ch:"vault"`
	Sender      common.Address `ch:"other"`
	Partner     uint32         `ch:"partner"`
	Number      uint64         `ch:"id"`
	Assets      string         `ch:"amount"`
	Shares      string         `ch:"share_amount"`
	PricedBlock uint64         `ch:"priced_block"`
	Time        uint32         `ch:"ts"`
	Tx          common.Hash    `ch:"hash"`
	ClosedBlock uint64         `ch:"closed_block"`
	ClosedTime  uint32         `ch:"closed_ts"`
}

// blocks limit a list, both included.
type blocks struct {
	First uint64 `ask:"first"`
	Last  uint64 `ask:"last"`
}

type ofUser struct {
	User  common.Address `ask:"user" reads:"user_events.deposit"`
	Vault common.Address `ask:"vault"` // zero: all vaults
	blocks
}

type ofVault struct {
	Vault common.Address `ask:"vault" reads:"vault_events.deposit"`
	blocks
}

type ofPartner struct {
	Partner ask.Partner `ask:"partner" reads:"partner_events.deposit"`
	blocks
}

// ofVoided selects the deposits of an owner in some scopes of the list groups.
type ofVoided struct {
	Owner  common.Address   `ask:"owner" reads:"groups"`
	Scopes []common.Address `ask:"scopes"`
	blocks
}

type voided struct {
	ask.Mark
	Total uint64 `ch:"total"`
}

// filter describes the deposits of an owner, as the pages do.
func (b blocks) filter(owner, vault common.Address) (ask.Filter, bool) {
	return ask.Filter{Owner: owner, Kind: "deposit", Above: ask.LowestKey, UpTo: ask.HighestKey,
		First: b.First, Last: b.Last, Vault: vault, NotVoid: true}, true
}

var (
	userPage = ask.NewPage[ofUser, deposit]("user_events", sqlUser, ask.NewestFirst).Deep(func(_ *ask.Pin, a ofUser) (ask.Filter, bool) {
		return a.filter(a.User, a.Vault)
	})
	vaultPage = ask.NewPage[ofVault, deposit]("vault_events", sqlVault, ask.NewestFirst).Deep(func(_ *ask.Pin, a ofVault) (ask.Filter, bool) {
		return a.filter(a.Vault, common.Address{})
	}).Long()
	partnerPage = ask.NewPage[ofPartner, deposit]("partner_events", sqlPartner, ask.NewestFirst).Deep(func(_ *ask.Pin, a ofPartner) (ask.Filter, bool) {
		return a.filter(readmodel.PartnerOwner(uint32(a.Partner)), common.Address{})
	}).Long()
	voidedLater = ask.New[ofVoided, voided](sqlVoided)
)

// OfUser returns a page of a user's deposits, newest first, in all vaults or in one.
func OfUser(r *serve.Request) (*serve.Answer, error) {
	user, page, span, vault := r.PathAddress(), r.Params.Page(), r.Params.Span(), r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofUser{User: user}
		if vault != nil {
			if _, known := p.Vault(*vault); !known {
				return serve.Nothing[depositJSON](ctx, r, p, page)
			}
			args.Vault = *vault
		}
		var err error
		if args.blocks, err = between(ctx, p, span); err != nil {
			return nil, err
		}
		return answer(ctx, r, p, page, userPage, args, args.Last, func() (int64, error) {
			var scopes []common.Address
			for _, v := range p.Wanted(vault) {
				if !v.Mapped.Description.Single().Deposits {
					scopes = append(scopes, v.Address)
				}
			}
			return count(ctx, p, ask.UserTotalsBetween, ofVoided{user, scopes, args.blocks}, vault)
		})
	})
}

// OfVault returns a page of a vault's deposits, newest first, in the order of the vault's numbers.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		v, known := p.Vault(vault)
		if !known {
			return nil, serve.NoSuchVault()
		}
		args, err := ofVault{Vault: vault}, error(nil)
		if args.blocks, err = between(ctx, p, span); err != nil {
			return nil, err
		}
		return answer(ctx, r, p, page, vaultPage, args, args.Last, func() (int64, error) {
			var scopes []common.Address
			if !v.Mapped.Description.Single().Deposits {
				scopes = []common.Address{{}}
			}
			return count(ctx, p, ask.TotalsBetween, ofVoided{vault, scopes, args.blocks}, nil)
		})
	})
}

// OfPartner returns a page of the deposits through the partner that the request's key belongs to, newest first.
func OfPartner(r *serve.Request) (*serve.Answer, error) {
	page := r.Params.Page()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofPartner{Partner: ask.Partner(r.Partner.ID), blocks: blocks{Last: p.Block}}
		return answer(ctx, r, p, page, partnerPage, args, args.Last, func() (int64, error) {
			return count(ctx, p, ask.TotalsBetween, ofVoided{readmodel.PartnerOwner(r.Partner.ID), nil, args.blocks}, nil)
		})
	})
}

// between returns the blocks of a time range.
func between(ctx context.Context, p *ask.Pin, span serve.Span) (b blocks, err error) {
	b.First, b.Last, err = p.Blocks(ctx, span.From, span.To)
	return b, err
}

// answer returns a list of deposits up to a block. count returns the total.
func answer[A any](ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page,
	question *ask.Page[A, deposit], args A, last uint64, count func() (int64, error)) (*serve.Answer, error) {
	return serve.Listed(ctx, r, p, page, question, args, count, func(rows []deposit) []depositJSON { return described(p, rows, last) })
}

// count returns how many deposits an owner has in a range of blocks, in all vaults or in one. Deposits from before the
// range that became void within it are in the difference of the totals, but not in the list.
func count(ctx context.Context, p *ask.Pin, between func(context.Context, *ask.Pin, uint64, uint64, ...common.Address) (upTo, before ask.AllTotals, err error),
	in ofVoided, vault *common.Address) (int64, error) {
	if in.Last < in.First {
		return 0, nil
	}
	upTo, before, err := between(ctx, p, in.First, in.Last, in.Owner)
	total := int64(upTo.Sum(in.Owner, vault).Deposits) - int64(before.Sum(in.Owner, vault).Deposits)
	if err != nil || in.First == 0 || len(in.Scopes) == 0 {
		return total, err
	}
	void, _, err := voidedLater.One(ctx, p, in)
	return total + int64(void.Total), err
}

// described returns the deposits of a list as they were at block last: a deposit that had no price by then has no
// shares yet.
func described(p *ask.Pin, rows []deposit, last uint64) []depositJSON {
	out := make([]depositJSON, len(rows))
	for i := range rows {
		out[i] = rows[i].json(p)
		if rows[i].PricedBlock > last {
			out[i].Shares = nil
		}
	}
	return out
}

// json returns the deposit as it is at the pin's block.
func (d *deposit) json(p *ask.Pin) depositJSON {
	user := d.User.Hex()
	sender := &user // mostly, and its checksum takes as long as the rest of the row
	if d.Sender != d.User {
		sender = p.AddressOrNil(d.Vault, mapping.Deposit, d.Block, d.Sender)
	}
	address, name := p.Written(d.Vault)
	tx := d.Tx.Hex()
	out := depositJSON{
		ID: serve.EffectID(tx, d.LogIndex, d.Sub), VaultAddress: address, VaultName: name, UserAddress: user, SenderAddress: sender,
		AssetAmount: d.Assets, Shares: &d.Shares, PartnerID: serve.OrNull(d.Partner),
		TxHash: tx, BlockNumber: serve.Decimal(d.Block), LogIndex: d.LogIndex, Timestamp: serve.Time(uint64(d.Time)),
	}
	if d.ClosedBlock <= p.Block && d.PricedBlock == 0 { // no sweep closes a deposit that is priced later
		out.SweptAt = serve.TimeOrNull(uint64(d.ClosedTime))
	}
	return out
}
