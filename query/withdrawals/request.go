package withdrawals

import (
	"cmp"
	"context"
	_ "embed"
	"math/big"
	"slices"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

//go:embed events.sql
var sqlEvents string

// key names a request.
type key struct {
	Vault string `ch:"vault"`
	Index uint64 `ch:"request_index"`
}

// event is one thing that happened to a request. What kind requested does not say, or
// only it says, is zero in the others.
type event struct {
	key
	Kind     string   `ch:"kind"`
	User     string   `ch:"user"`
	Receiver string   `ch:"receiver"`
	Partner  uint32   `ch:"partner"`
	Shares   *big.Int `ch:"shares"`
	Assets   *big.Int `ch:"assets"` // asked for, funded or claimed
	Expires  uint64   `ch:"expires_ts"`
	Block    uint64   `ch:"block"`
	Time     uint32   `ch:"ts"`
	Tx       string   `ch:"tx"`
	LogIndex uint32   `ch:"log_index"`
}

// request is what a request has come to.
type request struct {
	asked  event
	funded *event // nil: it was not
	end    *event // what claimed, cancelled or expired it; nil: it is open
}

// read gives what some requests have come to, in no order.
func read(ctx context.Context, p *pin.Pin, keys []key) ([]request, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var requests pin.Keys
	for _, k := range keys {
		requests.Numbered(httpapi.ToAddress(k.Vault), k.Index)
	}
	events, err := pin.Ask[event](ctx, p, sqlEvents, pin.Args{"requests": &requests})
	if err != nil {
		return nil, err
	}
	return fold(events), nil
}

// fold makes requests of the events of each, which come in the order of the chain: the
// first request of an index is the one, the first of claimed, cancelled and expired
// ends it, and what comes before it or after its end changes nothing.
func fold(events []event) []request {
	byKey := make(map[key]*request)
	for _, e := range events {
		r := byKey[e.key]
		switch {
		case r == nil:
			if e.Kind == "requested" {
				byKey[e.key] = &request{asked: e}
			}
		case r.end != nil || e.Kind == "requested":
		case e.Kind == "funded":
			if r.funded == nil {
				r.funded = &e
			}
		default:
			r.end = &e
		}
	}
	out := make([]request, 0, len(byKey))
	for _, r := range byKey {
		out = append(out, *r)
	}
	return out
}

// oldestFirst puts requests into the order in which they were made.
func oldestFirst(requests []request) {
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.asked.Block, b.asked.Block), cmp.Compare(a.asked.LogIndex, b.asked.LogIndex))
	})
}

// Values of the status of a request. But for the first they are also the kinds of
// the events that end it.
const (
	queued    = "queued"
	claimed   = "claimed"
	cancelled = "cancelled"
	expired   = "expired"
)

// status judges a request at a time. One that was not funded is over when its time is,
// also where nobody said so on chain.
func (r *request) status(now uint64) string {
	switch {
	case r.end != nil:
		return r.end.Kind
	case r.funded == nil && r.asked.Expires != 0 && r.asked.Expires <= now:
		return expired
	}
	return queued
}

type requestJSON struct {
	ID              string  `json:"id"`
	VaultAddress    string  `json:"vaultAddress"`
	VaultName       string  `json:"vaultName"`
	UserAddress     string  `json:"userAddress"`
	ReceiverAddress string  `json:"receiverAddress"`
	RequestIndex    string  `json:"requestIndex"`
	Shares          string  `json:"shares"`
	AssetsEstimate  string  `json:"assetsEstimate"`
	Status          string  `json:"status"`
	Claimable       bool    `json:"claimable"`
	AssetsClaimable string  `json:"assetsClaimable"`
	AssetsClaimed   string  `json:"assetsClaimed"`
	PartnerID       *uint32 `json:"partnerId,omitempty"`
	RequestedAt     string  `json:"requestedAt"`
	ExpiresAt       *string `json:"expiresAt"`
	FundedAt        *string `json:"fundedAt"`
	ClaimedAt       *string `json:"claimedAt"`
	CancelledAt     *string `json:"cancelledAt"`
	ExpiredAt       *string `json:"expiredAt"`
	TxHash          string  `json:"txHash"`
	BlockNumber     string  `json:"blockNumber"`
	LogIndex        uint32  `json:"logIndex"`
	Timestamp       string  `json:"timestamp"`
}

func (r *request) json(p *pin.Pin, now uint64) requestJSON {
	address, name := p.Written(httpapi.ToAddress(r.asked.Vault))
	user := httpapi.ToAddress(r.asked.User).Hex()
	receiver := user // mostly, and its checksum takes as long as the rest
	if r.asked.Receiver != r.asked.User {
		receiver = httpapi.ToAddress(r.asked.Receiver).Hex()
	}
	tx, at := httpapi.ToHash(r.asked.Tx), httpapi.Time(uint64(r.asked.Time))
	out := requestJSON{
		ID: httpapi.LogID(tx, r.asked.LogIndex), VaultAddress: address, VaultName: name,
		UserAddress: user, ReceiverAddress: receiver, RequestIndex: httpapi.Decimal(r.asked.Index),
		Shares: r.asked.Shares.String(), AssetsEstimate: r.asked.Assets.String(), Status: r.status(now),
		AssetsClaimable: "0", AssetsClaimed: "0", PartnerID: httpapi.PartnerOrAbsent(r.asked.Partner),
		RequestedAt: at, ExpiresAt: httpapi.TimeOrNull(r.asked.Expires),
		TxHash: tx, BlockNumber: httpapi.Decimal(r.asked.Block), LogIndex: r.asked.LogIndex, Timestamp: at,
	}
	if r.funded != nil {
		out.FundedAt = httpapi.TimeOrNull(uint64(r.funded.Time))
		if r.end == nil {
			out.Claimable, out.AssetsClaimable = true, r.funded.Assets.String()
		}
	}
	switch {
	case r.end == nil:
		if out.Status == expired {
			out.ExpiredAt = out.ExpiresAt
		}
	case r.end.Kind == claimed:
		out.ClaimedAt, out.AssetsClaimed = httpapi.TimeOrNull(uint64(r.end.Time)), r.end.Assets.String()
	case r.end.Kind == cancelled:
		out.CancelledAt = httpapi.TimeOrNull(uint64(r.end.Time))
	case r.end.Kind == expired:
		out.ExpiredAt = httpapi.TimeOrNull(uint64(r.end.Time))
	}
	return out
}
