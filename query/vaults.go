package query

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/webhook"
)

// maxVaults is the most that the list of vaults shows.
const maxVaults = 6

type vaultJSON struct {
	Address       string    `json:"address"`
	Name          string    `json:"name"`
	Symbol        string    `json:"symbol"`
	ChainID       uint64    `json:"chainId"`
	Decimals      uint32    `json:"decimals"`
	Asset         assetJSON `json:"asset"`
	TotalAssets   *string   `json:"totalAssets"`
	TotalSupply   *string   `json:"totalSupply"`
	NavPerShare   *string   `json:"navPerShare"`
	NavUpdatedAt  *string   `json:"navUpdatedAt"`
	StartBlock    string    `json:"startBlock"`
	*statsWrapper           // only in the detail
}

type assetJSON struct {
	Address  string `json:"address"`
	Symbol   string `json:"symbol"`
	Decimals uint32 `json:"decimals"`
}

type statsWrapper struct {
	Stats statsJSON `json:"stats"`
}

type statsJSON struct {
	UserCount          int64   `json:"userCount"`
	PendingWithdrawals int64   `json:"pendingWithdrawals"`
	LastSweepAt        *string `json:"lastSweepAt"`
	LastNavAt          *string `json:"lastNavAt"`
}

type navJSON struct {
	ID           string `json:"id"`
	VaultAddress string `json:"vaultAddress"`
	VaultName    string `json:"vaultName"`
	NavPerShare  string `json:"navPerShare"`
	TotalAssets  string `json:"totalAssets"`
	TotalSupply  string `json:"totalSupply"`
	Timestamp    string `json:"timestamp"`
	BlockNumber  string `json:"blockNumber"`
	TxHash       string `json:"txHash"`
	LogIndex     uint32 `json:"logIndex"`
}

// navRow is one NAV update as the questions give it.
type navRow struct {
	Vault       string   `ch:"vault"`
	NavPerShare *big.Int `ch:"nav_per_share"`
	TotalAssets *big.Int `ch:"total_assets"`
	TotalSupply *big.Int `ch:"total_supply"`
	Block       uint64   `ch:"block"`
	Time        uint32   `ch:"ts"`
	Tx          string   `ch:"tx"`
	LogIndex    uint32   `ch:"log_index"`
}

// signedNav is one, or with sign -1 what takes one back.
type signedNav struct {
	navRow
	Sign int8 `ch:"sign"`
}

func (n signedNav) sign() int8 { return n.Sign }

func (n signedNav) samePlace(o signedNav) bool {
	return n.Vault == o.Vault && n.Block == o.Block && n.LogIndex == o.LogIndex
}

func (q *Query) listVaults(x *exchange) (*answer, error) {
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	navs, err := x.latestNavs(p, nil)
	if err != nil {
		return nil, err
	}
	out := make([]vaultJSON, 0, maxVaults)
	for _, v := range p.vaults[:min(len(p.vaults), maxVaults)] {
		out = append(out, v.json(q.chainID, navs))
	}
	return &answer{data: out}, nil
}

func (q *Query) getVault(x *exchange) (*answer, error) {
	address := x.pathAddress()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	v, err := p.vault(address)
	if err != nil {
		return nil, err
	}
	var navs map[common.Address]navRow
	var swept *sweeps
	var users map[common.Address]int64
	var queue *queue
	err = together(
		func() (err error) { navs, err = x.latestNavs(p, &address); return },
		func() (err error) { swept, err = x.sweeps(); return },
		func() (err error) { users, err = x.vaultUsers(p, &address); return },
		func() (err error) { queue, err = x.queue(p, &address); return },
	)
	if err != nil {
		return nil, err
	}
	lastSweep := swept.last(p, address).time
	out := v.json(q.chainID, navs)
	out.statsWrapper = &statsWrapper{statsJSON{
		UserCount: max(users[address], 0), PendingWithdrawals: queue.vaults[address].pending,
		LastSweepAt: timeOrNull(uint64(lastSweep)), LastNavAt: timeOrNull(uint64(navs[address].Time)),
	}}
	return &answer{data: out}, nil
}

// vaultUsers is how many users at least this vault has, or all: what they were in
// the snapshot before, or at a past block at a checkpoint, and what logs did since;
// and where neither tells, out of the tables.
func (x *exchange) vaultUsers(p *pin, vault *common.Address) (map[common.Address]int64, error) {
	return shared(x, p, func(h *head) *lazy[map[common.Address]int64] { return h.users }, func(was *earlier[map[common.Address]int64]) (map[common.Address]int64, error) {
		if was != nil {
			moves, err := x.movesSince(p, was.seq)
			return movedUsers(was.value, moves), err
		}
		then, err := x.standing(p)
		switch {
		case err != nil:
			return nil, err
		case then != nil:
			return then.users, nil
		}
		return x.readVaultUsers(p, p.asked(vault))
	})
}

// readVaultUsers reads how many users a vault has, or all, out of the totals that
// the engine holds in each part, unless these have rows later than the pin.
func (x *exchange) readVaultUsers(p *pin, vault *common.Address) (map[common.Address]int64, error) {
	type row struct {
		Vault string `ch:"vault"`
		Users int64  `ch:"users"`
		Last  uint64 `ch:"last"` // seq
	}
	filter := vaultParam(vault)
	rows, err := pinned[row](x, p, sqlVaultUsers, filter, named("edge", p.block))
	if err == nil && slices.ContainsFunc(rows, func(r row) bool { return r.Last > p.seq && p.rank(toAddress(r.Vault)) >= 0 }) {
		rows, err = pinned[row](x, p, sqlVaultUsersRow, filter)
	}
	out := make(map[common.Address]int64, len(rows))
	for _, r := range rows {
		out[toAddress(r.Vault)] = r.Users
	}
	return out, err
}

func (q *Query) listNavs(x *exchange) (*answer, error) {
	address := x.pathAddress()
	page, span := x.params.page(), x.params.span()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	v, err := p.vault(address)
	if err != nil {
		return nil, err
	}
	args := []param{named("vault", address), named("from", span.from), named("to", span.to)}
	rows, count, err := longPage[navRow](x, p, sqlNavs, page, func() (tally, error) { return pinnedOne[tally](x, p, sqlNavsCount, args...) }, args...)
	if err != nil {
		return nil, err
	}
	out := make([]navJSON, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.json(v))
	}
	return x.list(out, page, count), nil
}

// latestNavs are the newest NAVs by vault, of at least this one or of all.
func (x *exchange) latestNavs(p *pin, vault *common.Address) (navs map[common.Address]navRow, err error) {
	switch {
	case p.navs != nil:
		return p.navs, nil
	case vault != nil:
		nav, ok, fault := latestNav(x.ctx, p, *vault)
		if navs, err = make(map[common.Address]navRow), fault; ok {
			navs[*vault] = nav
		}
	default:
		navs, err = readLatestNavs(x.ctx, p)
	}
	if err != nil {
		return nil, readFailure(err)
	}
	return navs, nil
}

// navsLately is in how many blocks up to the pin most vaults have a NAV.
const navsLately = 1024

// readLatestNavs looks there, and for each of the other vaults at all it has:
// what is read of one that has had none for years does not grow.
func readLatestNavs(ctx context.Context, p *pin) (map[common.Address]navRow, error) {
	args := p.args(named("from", p.block-min(p.block, navsLately)))
	rows, err := ask[signedNav](ctx, p.generation, needed(sqlLateNavs, args), args...)
	if err != nil {
		return nil, err
	}
	byVault := make(map[common.Address][]signedNav)
	for _, r := range rows {
		byVault[toAddress(r.Vault)] = append(byVault[toAddress(r.Vault)], r)
	}
	navs := make(map[common.Address]navRow, len(p.vaults))
	var mu sync.Mutex
	var others []func() error
	for _, v := range p.vaults {
		if newest, ok := newestLive(byVault[v.address], signedNav.sign, signedNav.samePlace); ok {
			navs[v.address] = newest.navRow
			continue
		}
		others = append(others, func() error {
			nav, ok, err := latestNav(ctx, p, v.address)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				navs[v.address] = nav
			}
			return err
		})
	}
	return navs, together(others...)
}

// latestNav is the newest NAV of a vault, where it has one.
func latestNav(ctx context.Context, p *pin, vault common.Address) (navRow, bool, error) {
	args := p.args(named("vault", vault))
	rows, err := ask[signedNav](ctx, p.generation, needed(sqlNewestNavs, args), append(args, named("few", uint64(placesFirst)))...)
	if err != nil {
		return navRow{}, false, err
	}
	newest, ok := newestLive(rows, signedNav.sign, signedNav.samePlace)
	if ok || len(rows) < placesFirst {
		return newest.navRow, ok, nil
	}
	return askWide[navRow](ctx, p.generation, needed(sqlLatestNav, args), args...)
}

func (v *vault) json(chainID uint64, navs map[common.Address]navRow) vaultJSON {
	out := vaultJSON{
		Address: v.written, Name: v.name, Symbol: v.symbol, ChainID: chainID, Decimals: v.decimals,
		Asset:      assetJSON{Address: v.asset.address.Hex(), Symbol: v.asset.symbol, Decimals: v.asset.decimals},
		StartBlock: strconv.FormatUint(v.startBlock, 10),
	}
	if nav, ok := navs[v.address]; ok {
		assets, supply, price, at := nav.TotalAssets.String(), nav.TotalSupply.String(), nav.NavPerShare.String(), webhook.FormatTime(uint64(nav.Time))
		out.TotalAssets, out.TotalSupply, out.NavPerShare, out.NavUpdatedAt = &assets, &supply, &price, &at
	}
	return out
}

func (r *navRow) json(v *vault) navJSON {
	tx := toHash(r.Tx)
	return navJSON{
		ID: factID(tx, r.LogIndex), VaultAddress: v.written, VaultName: v.name,
		NavPerShare: r.NavPerShare.String(), TotalAssets: r.TotalAssets.String(), TotalSupply: r.TotalSupply.String(),
		Timestamp: webhook.FormatTime(uint64(r.Time)), BlockNumber: strconv.FormatUint(r.Block, 10), TxHash: tx, LogIndex: r.LogIndex,
	}
}

// args are the parameters of one page.
func (p page) args() []param {
	return []param{named("limit", uint64(p.size)), named("offset", p.offset())}
}

// toAddress reads a FixedString(20).
func toAddress(s string) common.Address { return common.BytesToAddress([]byte(s)) }

// toHash writes a FixedString(32).
func toHash(s string) string { return common.BytesToHash([]byte(s)).Hex() }

// factID names a log of a transaction. It is opaque to clients.
func factID(tx string, logIndex uint32) string {
	return tx + "-" + strconv.FormatUint(uint64(logIndex), 10)
}

// timeOrNull writes a time in Unix seconds; 0 is never.
func timeOrNull(seconds uint64) *string {
	if seconds == 0 {
		return nil
	}
	s := webhook.FormatTime(seconds)
	return &s
}
