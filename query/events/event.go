package events

import (
	"context"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
)

// row is a row of the table events: an effect of a log, or a log without effect.
type row struct {
	Seq         uint64         `ch:"seq"`
	Sub         uint8          `ch:"sub"`
	Kind        string         `ch:"name" sql:"event"`
	Effect      string         `ch:"effect"`
	Quarantined bool           `ch:"quarantined"`
	Vault       common.Address `ch:"vault"`
	User        common.Address `ch:"user"`
	Tx          common.Hash    `ch:"tx"`
	Block       uint64         `ch:"block"`
	Time        uint32         `ch:"ts"`
	LogIndex    uint32         `ch:"log_index"`
	Partner     uint32         `ch:"partner"`
	ID          uint64         `ch:"id"`
	IDTo        uint64         `ch:"id_to"`
	Assets      string         `ch:"amount" sql:"toString(assets)"`
	Shares      string         `ch:"share_amount" sql:"toString(shares)"`
	Grouped     bool           `ch:"grouped"`
	NavPerShare string         `ch:"nav_per_share" sql:"toString(nav)"`
}

// place returns the row's position in a list, either of live logs or of all logs.
func (r *row) place(retracted bool) place {
	at := place{Block: r.Block, Index: uint64(r.LogIndex), Sub: r.Sub}
	if retracted {
		at.Seq = r.Seq
	}
	return at
}

const (
	live        = "live"
	retracted   = "retracted"   // by a reorganisation
	quarantined = "quarantined" // contains a number too large to be counted, or does not match the layout of its kind
)

type eventJSON struct {
	ID             string  `json:"id"`
	Seq            string  `json:"seq" file:"number"`
	Kind           string  `json:"kind"`
	VaultAddress   string  `json:"vaultAddress"`
	VaultName      string  `json:"vaultName" file:"foreign"`
	BlockNumber    string  `json:"blockNumber" file:"number"`
	Timestamp      string  `json:"timestamp" file:"time"`
	TxHash         string  `json:"txHash"`
	LogIndex       uint32  `json:"logIndex"`
	UserAddress    *string `json:"userAddress"`
	PartnerID      *uint32 `json:"partnerId"`
	DepositID      *string `json:"depositId" file:"number"`
	RequestIndex   *string `json:"requestIndex" file:"number"`
	Assets         *string `json:"assets"`
	Shares         *string `json:"shares"`
	NavPerShare    *string `json:"navPerShare"`
	TotalAssets    *string `json:"totalAssets"`
	TotalSupply    *string `json:"totalSupply"`
	FromID         *string `json:"fromId" file:"number"`
	ToID           *string `json:"toId" file:"number"`
	State          string  `json:"state"`
	RetractedBySeq *string `json:"retractedBySeq" file:"number"`
	Effect         *string `json:"effect"` // as the mapping language calls it; nil for a quarantined log
}

type retraction struct {
	Seq      uint64 `ch:"seq"`
	Retracts uint64 `ch:"retracts"`
}

type ofRetractions struct {
	Blocks []uint64 `ask:"blocks"`
	Seqs   []uint64 `ask:"seqs"`
}

var retractions = ask.New[ofRetractions, retraction](state.SQL(files, "retractions"))

// describe converts rows to events, in order. If they may have been retracted, it looks that up.
func describe(ctx context.Context, p *ask.Pin, rows []row, mayBeGone bool) ([]eventJSON, error) {
	out := make([]eventJSON, len(rows))
	for i := range rows {
		out[i] = rows[i].json(p)
	}
	if !mayBeGone || len(rows) == 0 {
		return out, nil
	}
	var of ofRetractions
	for i := range rows {
		of.Blocks, of.Seqs = append(of.Blocks, rows[i].Block), append(of.Seqs, rows[i].Seq)
	}
	of.Blocks = slices.Compact(of.Blocks)
	found, err := retractions.Rows(ctx, p, of)
	if err != nil {
		return nil, err
	}
	by := make(map[uint64]uint64, len(found))
	for _, r := range found {
		by[r.Retracts] = r.Seq
	}
	for i := range rows {
		if seq, gone := by[rows[i].Seq]; gone {
			out[i].State, out[i].RetractedBySeq = retracted, new(serve.Decimal(seq))
		}
	}
	return out, nil
}

func (r *row) json(p *ask.Pin) eventJSON {
	address, name := p.Written(r.Vault)
	tx := r.Tx.Hex()
	out := eventJSON{
		ID: serve.EffectID(tx, r.LogIndex, r.Sub), Seq: serve.Decimal(r.Seq), Kind: r.Kind, VaultAddress: address,
		VaultName:   name,
		BlockNumber: serve.Decimal(r.Block), Timestamp: serve.Time(uint64(r.Time)), TxHash: tx, LogIndex: r.LogIndex,
		State: live,
	}
	if r.User != (common.Address{}) {
		out.UserAddress = new(r.User.Hex())
	}
	if r.Quarantined {
		out.State = quarantined
	}
	if effect, _, _ := strings.Cut(r.Effect, "_"); effect != "none" { // the rest is what a price is about
		out.Effect = &effect
	}
	given := func(kind mapping.Kind, field mapping.Fields, number string) *string {
		return p.NumberOrNil(r.Vault, kind, field, r.Block, number)
	}
	id := serve.Decimal(r.ID)
	switch r.Effect {
	case "deposit":
		out.DepositID, out.PartnerID, out.Assets = &id, serve.OrNull(r.Partner), &r.Assets
		if !r.Grouped { // the shares follow from the later price of the group
			out.Shares = given(mapping.Deposit, mapping.Shares, r.Shares)
		}
	case "requested", "funded", "claimed", "cancelled", "expired":
		kind := onRequests[r.Effect]
		out.RequestIndex, out.Shares = given(kind, mapping.ID, id), given(kind, mapping.Shares, r.Shares)
		if r.Effect != "cancelled" && r.Effect != "expired" { // these name no assets
			out.PartnerID, out.Assets = serve.OrNull(r.Partner), given(kind, mapping.Assets, r.Assets)
		}
	case "instant":
		out.Assets, out.Shares = &r.Assets, &r.Shares
	case "valuation":
		out.NavPerShare = given(mapping.Valuation, mapping.Nav, r.NavPerShare)
		out.TotalAssets, out.TotalSupply = given(mapping.Valuation, mapping.Assets, r.Assets),
			given(mapping.Valuation, mapping.Shares, r.Shares)
	case "sweep":
		out.FromID, out.ToID, out.Assets = given(mapping.Sweep, mapping.ID, id), new(serve.Decimal(r.IDTo)), &r.Assets
	case "settled":
		out.Assets, out.Shares = given(mapping.Settled, mapping.Assets, r.Assets),
			given(mapping.Settled, mapping.Shares, r.Shares)
		out.NavPerShare = given(mapping.Settled, mapping.Nav, r.NavPerShare)
	}
	return out
}

// onRequests are the effects on requests, by their names in the table events.
var onRequests = map[string]mapping.Kind{"requested": mapping.Requested, "funded": mapping.Funded,
	"claimed": mapping.Claimed, "cancelled": mapping.Cancelled, "expired": mapping.Expired}
