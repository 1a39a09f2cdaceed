// Package withdrawals serves withdrawal requests: those of a user, of a vault, and the queue of those that are
// pending or claimable.
//
// Each row of a list is a complete request: when it was requested, funded and closed, and by what. Its status at a
// block follows from the row, by ignoring what happened after that block.
package withdrawals

import (
	"context"
	"embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
)

//go:embed *.sql
var files embed.FS

type ofUser struct {
	User   common.Address `ask:"user" reads:"user_requests"`
	Vault  common.Address `ask:"vault"`  // zero: all
	Status ask.Word       `ask:"status"` // empty: any
}

type ofVault struct {
	Vault common.Address `ask:"vault" reads:"requests"`
	ask.Blocks
}

// inQueue selects the queue of a vault, or of all if it is zero.
type inQueue struct {
	Vault common.Address `ask:"vault" reads:"queue"`
}

type counted struct {
	ask.Mark
	Total  uint64 `ch:"total"`
	Lapses uint64 `ch:"lapses"`
}

const anyStatus = "any"

var (
	userPage  = ask.NewPage[ofUser, request]("user_requests", state.SQL(files, "user"), ask.NewestFirst).Deep()
	userCount = ask.New[ofUser, counted](state.SQL(files, "user_count"))
	vaultPage = ask.NewPage[ofVault, request]("requests", state.SQL(files, "vault"), ask.NewestFirst).Deep().Long()
	// A request that a later unit closes is missing from the list of open ones, so the page is only valid for
	// the newest block.
	queuePage = ask.NewPage[inQueue, request]("queue", state.SQL(files, "queue"), ask.OldestFirst).
			Newest().Deep().Long()
	pastQueuePage = ask.NewPage[inQueue, request]("queue", state.SQL(files, "queue_past"), ask.OldestFirst)
)

// OfUser returns a page of a user's requests, newest first, in all vaults or in one, and with any status or with one.
func OfUser(r *serve.Request) (*serve.Answer, error) {
	user, page, vault := r.PathAddress(), r.Params.Page(), r.Params.Filter("vault")
	status := r.Params.OneOf("status", anyStatus, queued, claimed, cancelled)
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofUser{User: user, Vault: p.Only(vault)}
		if status != anyStatus {
			args.Status = ask.Word(status)
		}
		return list(ctx, r, p, page, userPage, args, func() (int64, error) {
			if status == anyStatus {
				totals, err := ask.UserTotals(ctx, p, user)
				return int64(totals.Sum(user, vault).Requests), err
			}
			n, _, err := userCount.One(ctx, p, args)
			p.Lapses(n.Lapses)
			return int64(n.Total), err
		})
	})
}

// OfVault returns a page of a vault's requests, newest first, in the order of the vault's numbers.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.WithVault(vault, func(ctx context.Context, p *ask.Pin, _ *state.Vault) (*serve.Answer, error) {
		args, err := ofVault{Vault: vault}, error(nil)
		if args.Blocks, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		return list(ctx, r, p, page, vaultPage, args, func() (int64, error) {
			return ask.Growth(ctx, p, ask.Whose{Owners: []common.Address{vault}}, args.Blocks,
				func(s *ask.Sums) uint64 { return s.Owners.Of(vault, vault).Requests })
		})
	})
}

// Queue returns a page of the requests that are pending or claimable, oldest first, of all vaults or of one.
func Queue(r *serve.Request) (*serve.Answer, error) {
	page, vault := r.Params.Page(), r.Params.Filter("vault")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		question := queuePage
		if p.AsOf || r.AsFile() { // a file stays at its block, however long it takes to send
			question = pastQueuePage
		}
		return list(ctx, r, p, page, question, inQueue{p.Only(vault)}, func() (total int64, err error) {
			vaults, err := ask.Queue(ctx, p, vault)
			for _, v := range vaults {
				total += int64(v.Total)
			}
			return total, err
		})
	})
}

// list returns a list of requests. count returns the total.
func list[A any](ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page, question *ask.Page[A, request],
	args A,
	count func() (int64, error)) (*serve.Answer, error) {
	now, err := p.Now(ctx)
	if err != nil {
		return nil, err
	}
	return serve.Listed(ctx, r, p, page, question, args, count, func(q *request) requestJSON { return q.json(p, now) })
}

// request is a row of the lists. It also contains later events, from after the block of an answer.
type request struct {
	ask.Entry
	Vault         common.Address `ch:"vault"`
	Receiver      common.Address `ch:"other"`
	Partner       uint32         `ch:"partner"`
	Index         uint64         `ch:"id"`
	Shares        string         `ch:"share_amount" sql:"toString(shares)"`
	Estimate      string         `ch:"estimate" sql:"toString(assets)"`
	Expires       uint64         `ch:"expires"`
	Time          uint32         `ch:"ts"`
	Tx            common.Hash    `ch:"hash"`
	PricedBlock   uint64         `ch:"priced_block"`
	FundedBlock   uint64         `ch:"funded_block"`
	FundedTime    uint32         `ch:"funded_ts"`
	FundedAssets  string         `ch:"funded_amount" sql:"toString(funded_assets)"`
	ClosedBlock   uint64         `ch:"closed_block"`
	ClosedTime    uint32         `ch:"closed_ts"`
	ClosedBy      string         `ch:"closed_by"`
	ClaimedAssets string         `ch:"closed_amount" sql:"toString(closed_assets)"`
}

// Values of the status of a request. All but the first are also the effects that close it.
const (
	queued    = "queued"
	claimed   = "claimed"
	cancelled = "cancelled"
	expired   = "expired"
)

// status returns the status at a block and its time. A request that was not funded ends when it expires, even without
// a log.
func (r *request) status(block, now uint64) string {
	switch {
	case r.ClosedBlock <= block:
		return r.ClosedBy
	case r.FundedBlock > block && r.Expires != 0 && r.Expires <= now:
		return expired
	}
	return queued
}

type requestJSON struct {
	ID              string  `json:"id"`
	VaultAddress    string  `json:"vaultAddress"`
	VaultName       string  `json:"vaultName" file:"foreign"`
	UserAddress     string  `json:"userAddress"`
	ReceiverAddress *string `json:"receiverAddress"`
	RequestIndex    string  `json:"requestIndex" file:"number"`
	Shares          string  `json:"shares"`
	AssetsEstimate  *string `json:"assetsEstimate"`
	Status          string  `json:"status"`
	Claimable       bool    `json:"claimable"`
	AssetsClaimable *string `json:"assetsClaimable"`
	AssetsClaimed   *string `json:"assetsClaimed"`
	PartnerID       *uint32 `json:"partnerId,omitempty"`
	RequestedAt     string  `json:"requestedAt" file:"time"`
	ExpiresAt       *string `json:"expiresAt" file:"time"`
	FundedAt        *string `json:"fundedAt" file:"time"`
	ClaimedAt       *string `json:"claimedAt" file:"time"`
	CancelledAt     *string `json:"cancelledAt" file:"time"`
	ExpiredAt       *string `json:"expiredAt" file:"time"`
	TxHash          string  `json:"txHash"`
	BlockNumber     string  `json:"blockNumber" file:"number"`
	LogIndex        uint32  `json:"logIndex"`
	Timestamp       string  `json:"timestamp" file:"time"`
}

func (r *request) json(p *ask.Pin, now uint64) requestJSON {
	address, name := p.Written(r.Vault)
	user := r.User.Hex()
	receiver := &user // mostly, and its checksum takes as long as the rest
	if r.Receiver != r.User || r.User == (common.Address{}) {
		receiver = p.AddressOrNil(r.Vault, mapping.Requested, r.Block, r.Receiver)
	}
	none := "0"
	tx, at := r.Tx.Hex(), serve.Time(uint64(r.Time))
	out := requestJSON{
		ID: serve.EffectID(tx, r.LogIndex, r.Sub), VaultAddress: address, VaultName: name,
		UserAddress: user, ReceiverAddress: receiver, RequestIndex: serve.Decimal(r.Index),
		Shares: r.Shares, AssetsEstimate: p.NumberOrNil(r.Vault, mapping.Requested, mapping.Assets, r.Block, r.Estimate),
		Status:          r.status(p.Block, now),
		AssetsClaimable: &none, AssetsClaimed: &none, PartnerID: serve.OrNull(r.Partner),
		RequestedAt: at, ExpiresAt: serve.TimeOrNull(r.Expires),
		TxHash: tx, BlockNumber: serve.Decimal(r.Block), LogIndex: r.LogIndex, Timestamp: at,
	}
	funded, closed := r.FundedBlock <= p.Block, r.ClosedBlock <= p.Block
	if funded {
		out.FundedAt = serve.TimeOrNull(uint64(r.FundedTime))
		if !closed {
			out.Claimable, out.AssetsClaimable = true, r.worth(p, out.AssetsEstimate, r.FundedAssets)
		}
	}
	end := serve.TimeOrNull(uint64(r.ClosedTime))
	switch {
	case out.Status == queued:
		if !funded {
			p.Lapses(r.Expires)
		}
	case !closed:
		out.ExpiredAt = out.ExpiresAt
	case out.Status == claimed:
		out.ClaimedAt, out.AssetsClaimed = end, r.worth(p, out.AssetsEstimate, r.ClaimedAssets)
	case out.Status == cancelled:
		out.CancelledAt = end
	case out.Status == expired:
		out.ExpiredAt = end
	}
	return out
}

// worth is what the request was funded for or paid; nil if no log has it: neither the request, nor its funding, nor a
// price of its group.
func (r *request) worth(p *ask.Pin, estimate *string, assets string) *string {
	priced := r.PricedBlock != 0 && r.PricedBlock <= p.Block
	if assets == "0" && estimate == nil && !priced &&
		(r.FundedBlock > p.Block || p.NumberOrNil(r.Vault, mapping.Funded, mapping.Assets, r.FundedBlock, assets) == nil) {
		return nil
	}
	return &assets
}
