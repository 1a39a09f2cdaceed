// Package deposits serves deposits: those of a user, of a vault, and through a partner, and the queue of those that
// no sweep has reached.
//
// Each is one list, read newest first up to the end of the page, so that a user with a million deposits costs as
// little as any other. The length of a list comes from running totals. When a deposit was swept is part of its row.
package deposits

import (
	"context"
	"embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed *.sql
var files embed.FS

type depositJSON struct {
	ID            string  `json:"id"`
	VaultAddress  string  `json:"vaultAddress"`
	VaultName     string  `json:"vaultName" file:"foreign"`
	UserAddress   string  `json:"userAddress"`
	SenderAddress *string `json:"senderAddress"` // null if the log does not have it
	AssetAmount   string  `json:"assetAmount"`
	Shares        *string `json:"shares"`
	PartnerID     *uint32 `json:"partnerId,omitempty"`
	SweptAt       *string `json:"sweptAt" file:"time"`
	TxHash        string  `json:"txHash"`
	BlockNumber   string  `json:"blockNumber" file:"number"`
	LogIndex      uint32  `json:"logIndex"`
	Timestamp     string  `json:"timestamp" file:"time"`
}

type deposit struct {
	ask.Entry
	Vault       common.Address `ch:"vault"`
	Sender      common.Address `ch:"other"`
	Partner     uint32         `ch:"partner"`
	Number      uint64         `ch:"id"`
	Assets      string         `ch:"amount" sql:"toString(assets)"`
	Shares      string         `ch:"share_amount" sql:"toString(shares)"`
	PricedBlock uint64         `ch:"priced_block"`
	Time        uint32         `ch:"ts"`
	Tx          common.Hash    `ch:"hash"`
	ClosedBlock uint64         `ch:"closed_block"`
	ClosedTime  uint32         `ch:"closed_ts"`
}

// ofList selects the deposits of a user, a vault or a partner.
type ofList struct {
	Owner common.Address `ask:"owner" reads:"page.deposit"`
	Vault common.Address `ask:"vault,optional"` // of a user's or partner's deposits; zero: all vaults
	ask.Blocks
}

// ofVoided selects the deposits of an owner in some scopes of the list groups.
type ofVoided struct {
	Owner  common.Address   `ask:"owner" reads:"groups"`
	Scopes []common.Address `ask:"scopes"`
	ask.Blocks
}

type voided struct {
	ask.Mark
	Total uint64 `ch:"total"`
}

func newPage(list, sql string) *ask.Page[ofList, deposit] {
	return ask.NewPage[ofList, deposit](list, sql, ask.NewestFirst).Deep()
}

var (
	userPage    = newPage("user_events", state.SQL(files, "owner"))
	vaultPage   = newPage("vault_events", state.SQL(files, "vault")).Long()
	partnerPage = newPage("partner_events", state.SQL(files, "owner")).Long()
	voidedLater = ask.New[ofVoided, voided](state.SQL(files, "voided"))
)

// OfUser returns a page of a user's deposits, newest first, in all vaults or in one.
func OfUser(r *serve.Request) (*serve.Answer, error) {
	user, page, span, vault := r.PathAddress(), r.Params.Page(), r.Params.Span(), r.Params.Filter("vault")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args, err := ofList{Owner: user, Vault: p.Only(vault)}, error(nil)
		if args.Blocks, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		return list(ctx, r, p, page, userPage, args, func() (int64, error) {
			var scopes []common.Address
			for _, v := range p.VaultsMatching(vault) {
				if !v.Mapped.Description.Single().Deposits {
					scopes = append(scopes, v.Address)
				}
			}
			return count(ctx, p, ask.Whose{Users: []common.Address{user}}, ofVoided{user, scopes, args.Blocks},
				func(s *ask.Sums) uint64 { return s.Users.Sum(user, vault).Deposits })
		})
	})
}

// OfVault returns a page of a vault's deposits, newest first, in the order of the vault's numbers.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.WithVault(vault, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
		args, err := ofList{Owner: vault}, error(nil)
		if args.Blocks, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		return list(ctx, r, p, page, vaultPage, args, func() (int64, error) {
			var scopes []common.Address
			if !v.Mapped.Description.Single().Deposits {
				scopes = []common.Address{{}}
			}
			return countOfOwner(ctx, p, ofVoided{vault, scopes, args.Blocks})
		})
	})
}

// OfPartner returns a page of the deposits through the partner that the request's key belongs to, newest first.
func OfPartner(r *serve.Request) (*serve.Answer, error) {
	page, partner := r.Params.Page(), readmodel.PartnerOwner(r.Partner.ID)
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofList{Owner: partner, Blocks: ask.Blocks{Last: p.Block}}
		return list(ctx, r, p, page, partnerPage, args, func() (int64, error) {
			return countOfOwner(ctx, p, ofVoided{partner, nil, args.Blocks})
		})
	})
}

// list returns a list of deposits as they were at its last block. count returns the total.
func list(ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page,
	question *ask.Page[ofList, deposit], args ofList, count func() (int64, error)) (*serve.Answer, error) {
	return serve.Listed(ctx, r, p, page, question, args, count,
		func(d *deposit) depositJSON { return d.json(p, args.Last) })
}

// countOfOwner is count for a vault or a partner.
func countOfOwner(ctx context.Context, p *ask.Pin, in ofVoided) (int64, error) {
	return count(ctx, p, ask.Whose{Owners: []common.Address{in.Owner}}, in,
		func(s *ask.Sums) uint64 { return s.Owners.Sum(in.Owner, nil).Deposits })
}

// count returns how many deposits an owner has in a range of blocks, where number is that of some totals. Deposits from
// before the range that became void within it are in the growth of the totals, but not in the list.
func count(
	ctx context.Context, p *ask.Pin, whose ask.Whose, in ofVoided, number func(*ask.Sums) uint64,
) (int64, error) {
	total, err := ask.Growth(ctx, p, whose, in.Blocks, number)
	if err != nil || in.First == 0 || in.Last < in.First || len(in.Scopes) == 0 {
		return total, err
	}
	void, _, err := voidedLater.One(ctx, p, in)
	return total + int64(void.Total), err
}

// json returns the deposit as it was at block last: one that had no price by then has no shares yet. Whether it is
// swept is shown as at the pin's block.
func (d *deposit) json(p *ask.Pin, last uint64) depositJSON {
	user := d.User.Hex()
	sender := &user // mostly, and its checksum takes as long as the rest of the row
	if d.Sender != d.User || d.User == (common.Address{}) {
		sender = p.AddressOrNil(d.Vault, mapping.Deposit, d.Block, d.Sender)
	}
	address, name := p.Written(d.Vault)
	tx := d.Tx.Hex()
	out := depositJSON{
		ID: serve.EffectID(tx, d.LogIndex, d.Sub), VaultAddress: address, VaultName: name, UserAddress: user,
		SenderAddress: sender,
		AssetAmount:   d.Assets, Shares: &d.Shares, PartnerID: serve.OrNull(d.Partner),
		TxHash: tx, BlockNumber: serve.Decimal(d.Block), LogIndex: d.LogIndex, Timestamp: serve.Time(uint64(d.Time)),
	}
	if d.PricedBlock > last {
		out.Shares = nil
	}
	if d.ClosedBlock <= p.Block && d.PricedBlock == 0 { // no sweep closes a deposit that is priced later
		out.SweptAt = serve.TimeOrNull(uint64(d.ClosedTime))
	}
	return out
}
