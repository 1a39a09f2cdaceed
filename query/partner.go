package query

import (
	"math"
	"math/big"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

type partnerStatsJSON struct {
	PartnerID     uint32            `json:"partnerId"`
	PartnerName   string            `json:"partnerName"`
	TotalDeposits int64             `json:"totalDeposits"`
	TotalVolume   string            `json:"totalVolume"`
	UniqueUsers   int64             `json:"uniqueUsers"`
	ByVault       []vaultVolumeJSON `json:"byVault"`
}

type vaultVolumeJSON struct {
	VaultAddress string `json:"vaultAddress"`
	DepositCount int64  `json:"depositCount"`
	TotalVolume  string `json:"totalVolume"`
}

type routerJSON struct {
	RouterAddress string `json:"routerAddress"`
	ChainID       uint64 `json:"chainId"`
}

func (q *Query) partnerStats(x *exchange) (*answer, error) {
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	brought, err := x.brought(p)
	if err != nil {
		return nil, err
	}
	rows, users := slices.Clone(brought.vaults), brought.users
	if users < 0 {
		if users, err = total(x, p, sqlPartnerUsers, named("partner", x.caller.id)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b volumeRow) int { return p.rank(toAddress(a.Vault)) - p.rank(toAddress(b.Vault)) })
	out := partnerStatsJSON{PartnerID: x.caller.id, PartnerName: x.caller.name, UniqueUsers: users, ByVault: []vaultVolumeJSON{}}
	volume := new(big.Int)
	for _, r := range rows {
		if r.Deposits <= 0 {
			continue
		}
		out.TotalDeposits += r.Deposits
		volume.Add(volume, r.Volume)
		vault, _ := p.written(toAddress(r.Vault))
		out.ByVault = append(out.ByVault, vaultVolumeJSON{vault, r.Deposits, r.Volume.String()})
	}
	out.TotalVolume = volume.String()
	return &answer{data: out}, nil
}

type volumeRow struct {
	Partner  uint32   `ch:"partner"`
	Vault    string   `ch:"vault"`
	Side     uint8    `ch:"side"` // 0: it counts
	Deposits int64    `ch:"deposits"`
	Said     uint64   `ch:"said"` // how many rows say so
	Volume   *big.Int `ch:"volume"`
	Users    int64    `ch:"users"`
	First    uint64   `ch:"first"` // seq
	Last     uint64   `ch:"last"`
}

// brought is what was deposited through a partner.
type brought struct {
	vaults []volumeRow // one for each
	users  int64       // how many users did, -1 for unknown
}

// with is what was brought with some more rows, or without them (sign -1).
func (b brought) with(rows []volumeRow, sign int64) brought {
	b.vaults = slices.Clone(b.vaults)
	for _, r := range rows {
		i := slices.IndexFunc(b.vaults, func(o volumeRow) bool { return o.Vault == r.Vault })
		if i < 0 {
			i = len(b.vaults)
			b.vaults = append(b.vaults, volumeRow{Vault: r.Vault, Volume: new(big.Int)})
		}
		v := &b.vaults[i]
		v.Deposits += sign * r.Deposits
		v.Said += uint64(sign) * r.Said
		v.Volume = new(big.Int).Add(v.Volume, new(big.Int).Mul(r.Volume, big.NewInt(sign)))
		b.users += sign * r.Users
	}
	return b
}

// byPartner is what partners brought up to a head, of those that asked lately.
type byPartner struct {
	mu sync.Mutex
	of map[uint32]*lazy[brought]
}

// next is the same of the snapshot that follows the one at seq.
func (b *byPartner) next(seq uint64) *byPartner {
	next := &byPartner{of: make(map[uint32]*lazy[brought])}
	if b == nil {
		return next
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for partner, l := range b.of {
		if l.demand.Load() > 0 {
			next.of[partner] = l.next(seq)
		}
	}
	return next
}

// partner is what one brought.
func (b *byPartner) partner(id uint32) *lazy[brought] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[id] == nil {
		b.of[id] = newLazy[brought]()
	}
	return b.of[id]
}

// bringForward reads what is new of the partners that asked lately, together
// where it was last read at the same seq, before the head is shown to anybody.
func (x *exchange) bringForward(p *pin, b *byPartner) error {
	partners := make(map[uint64][]uint32) // by the seq
	for id, l := range b.of {
		if was := l.before(p.seq); was != nil && l.demand.Add(-1) >= 0 {
			partners[was.seq] = append(partners[was.seq], id)
		}
	}
	for seq, ids := range partners {
		rows, err := x.newVolumes(p, ids, seq, p.seq)
		if err != nil {
			return err
		}
		for _, id := range ids {
			l := b.of[id]
			l.set(l.was.value.with(slices.DeleteFunc(slices.Clone(rows), func(r volumeRow) bool { return r.Partner != id }), 1))
		}
	}
	return nil
}

// brought is what the caller brought up to the pin.
func (x *exchange) brought(p *pin) (brought, error) {
	return shared(x, p, func(h *head) *lazy[brought] { return h.brought.partner(x.caller.id) }, func(was *earlier[brought]) (brought, error) {
		switch {
		case p.asOf:
			return x.broughtAsOf(p)
		case was != nil:
			rows, err := x.newVolumes(p, []uint32{x.caller.id}, was.seq, p.seq)
			return was.value.with(rows, 1), err
		}
		return x.broughtUpTo(p)
	})
}

// broughtUpTo adds up the totals that the engine keeps, and takes off what is
// later than the pin.
func (x *exchange) broughtUpTo(p *pin) (out brought, err error) {
	rows, err := pinned[volumeRow](x, p, sqlPartnerStatsNewest, named("partner", x.caller.id))
	if err != nil {
		return out, err
	}
	out = out.with(rows, 1)
	if _, last, _ := counted(rows); last > p.seq {
		rows, err = x.newVolumes(p, []uint32{x.caller.id}, p.seq, last)
		out = out.with(rows, -1)
	}
	return out, err
}

// newVolumes are the rows of some partners after a seq, up to another.
func (x *exchange) newVolumes(p *pin, partners []uint32, after, to uint64) ([]volumeRow, error) {
	if to == p.seq {
		if deposits, ok, err := x.newDeposits(p, after); ok || err != nil {
			return volumes(deposits, partners), err
		}
	}
	return pinned[volumeRow](x, p, sqlPartnerStatsNew, named("partners", partners), named("after", after), named("last", to))
}

// volumes are what some deposits are to some partners.
func volumes(deposits []newDeposit, partners []uint32) (out []volumeRow) {
	for _, d := range deposits {
		if slices.Contains(partners, d.Partner) {
			out = append(out, volumeRow{Partner: d.Partner, Vault: d.Vault, Deposits: int64(d.Sign), Said: 1, Volume: d.volume(), Users: int64(d.PartnerUser)})
		}
	}
	return out
}

// broughtAsOf tells it by spans where these do, and else reads the blocks around the
// pin's by row, and the others out of the totals; where these hold rows later than the
// pin, all rows.
func (x *exchange) broughtAsOf(p *pin) (out brought, err error) {
	if out, ok, err := x.broughtBySpans(p); ok || err != nil {
		return out, err
	}
	partner, from := named("partner", x.caller.id), p.block/blocksOfTotals*blocksOfTotals
	rows, err := pinned[volumeRow](x, p, sqlPartnerStatsAsOf, partner, named("from", from), named("to", from+blocksOfTotals))
	if err != nil {
		return out, err
	}
	users, last, after := counted(rows)
	// Users are counted in the order of the log. That is the chain's but where a
	// vault was filled in later or blocks were replaced: then some row that counts
	// comes after one that does not.
	if last > after {
		users = -1
	}
	if last > p.seq {
		users = -1
		if rows, err = pinned[volumeRow](x, p, sqlPartnerStats, partner); err != nil {
			return out, err
		}
	}
	out = out.with(slices.DeleteFunc(rows, func(r volumeRow) bool { return r.Side != 0 }), 1)
	out.users = users
	return out, nil
}

// blocksOfTotals is how many blocks share a row of the projection totals.
const blocksOfTotals = 4096

// counted adds up the users of the rows that count, and gives their last seq and
// the first one of a later block.
func counted(rows []volumeRow) (users int64, last, after uint64) {
	after = math.MaxUint64
	for _, r := range rows {
		switch r.Side {
		case 0:
			users, last = users+r.Users, max(last, r.Last)
		case 2:
			after = min(after, r.First)
		}
	}
	return users, last, after
}

func (q *Query) listPartnerDeposits(x *exchange) (*answer, error) {
	page := x.params.page()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	counted := func() (t tally, err error) {
		brought, err := x.brought(p)
		for _, r := range brought.vaults {
			t.Total, t.Said = t.Total+r.Deposits, t.Said+r.Said
		}
		return t, err
	}
	var rows []depositRow
	var count int64
	var swept *sweeps
	err = together(
		func() (err error) {
			rows, count, err = longPage[depositRow](x, p, sqlPartnerDeps, page, counted, named("partner", x.caller.id))
			return err
		},
		func() (err error) { swept, err = x.sweeps(); return },
	)
	if err != nil {
		return nil, err
	}
	out := make([]depositJSON, len(rows))
	for i, r := range rows {
		out[i] = r.json(p, swept)
	}
	return x.list(out, page, count), nil
}

func (q *Query) getRouter(x *exchange) (*answer, error) {
	return &answer{data: routerJSON{RouterAddress: common.HexToAddress(q.cfg.Router).Hex(), ChainID: q.chainID}}, nil
}
