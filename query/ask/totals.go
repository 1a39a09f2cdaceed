package ask

import (
	"context"
	"math/big"
	"reflect"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

// Whose selects what SumsOf reads.
type Whose struct {
	// Owners are vaults, partners (readmodel.PartnerOwner) or everything (zero).
	Owners []common.Address `ask:"owners" reads:"totals"`
	Users  []common.Address `ask:"users" reads:"user_totals"`
	// Members are users whose first time is read, each at most once.
	Members []Member `ask:"members" reads:"members"`
}

type ofSteps struct {
	Whose
	At uint64 `ask:"at"`
	// Past: steps at a past block are read; the index of blocks then skips most steps that began and ended later.
	Past bool `ask:"past"`
}

type stepRow struct {
	Signed
	Part
	Owner common.Address `ch:"owner"`
	Scope common.Address `ch:"scope"`
	User  common.Address `ch:"user"`
	From  uint64         `ch:"block"`
	Key   big.Int        `ch:"key"`
	Time  uint32         `ch:"ts"`
	Totals
}

var steps = New[ofSteps, stepRow](state.SQL(files, "sql/totals"))

// Totals are the running totals of an owner in a scope at a block. readmodel.List documents owners and scopes.
// Amounts are in native units.
type Totals struct {
	Deposits    uint64  `ch:"deposits"`
	Deposited   big.Int `ch:"deposited"`
	Requests    uint64  `ch:"requests"`
	Estimated   big.Int `ch:"estimated"`
	Claims      uint64  `ch:"claims"`
	Claimed     big.Int `ch:"claimed"`
	Users       uint64  `ch:"users"`
	Swept       uint64  `ch:"swept"`
	SweptAssets big.Int `ch:"swept_assets"`
	SweptTo     uint64  `ch:"swept_to"`   // the highest number that a sweep named
	LastSweep   uint32  `ch:"swept_ts"`   // Unix seconds, 0 if there was none
	Navs        uint64  `ch:"valuations"` // NAV updates
	NAV                 // the newest of them; its block is 0 if there is none
}

// NewestNav returns the newest NAV update of a vault, or nil if it has none.
func (t *Totals) NewestNav() *NAV {
	if t.Block == 0 {
		return nil
	}
	return &t.NAV
}

// The lists of vaults in responses leave vaults out. These functions report whether a list contains a vault, by the
// totals in that vault: HasDeposits and HasWithdrawals for a user or partner, HasUnswept for the vault itself.

// HasDeposits reports whether there are deposits.
func HasDeposits(_ *state.Vault, t *Totals) bool { return t.Deposits > 0 }

// HasWithdrawals reports whether there are withdrawal requests, or withdrawals without one.
func HasWithdrawals(_ *state.Vault, t *Totals) bool { return t.Requests > 0 || t.Claims > 0 }

// HasUnswept reports whether there are deposits that wait for a sweep. If a protocol has no sweeps, none waits for one.
func HasUnswept(v *state.Vault, t *Totals) bool {
	return v.Mapped.Description.Capabilities().Sweeps && t.Unswept() > 0
}

// Unswept returns how many deposits of a vault no sweep has reached.
func (t *Totals) Unswept() int64 { return int64(t.Deposits) - int64(t.Swept) }

// Holding identifies the totals of an owner in a scope.
type Holding struct{ Owner, Scope common.Address }

// AllTotals are totals by owner and scope.
type AllTotals map[Holding]*Totals

// Of returns the totals of an owner in a scope, or zeros if there are none.
func (a AllTotals) Of(owner, scope common.Address) *Totals {
	if t := a[Holding{owner, scope}]; t != nil {
		return t
	}
	return new(Totals)
}

// Sum adds up the totals of an owner over all vaults, or of one if vault is not nil. Users and swept amounts cannot
// be added up, and are zero.
func (a AllTotals) Sum(owner common.Address, vault *common.Address) *Totals {
	sum := new(Totals)
	for h, t := range a {
		if h.Owner != owner || h.Scope == (common.Address{}) || vault != nil && h.Scope != *vault {
			continue
		}
		sum.Deposits += t.Deposits
		sum.Requests += t.Requests
		sum.Claims += t.Claims
		sum.Deposited.Add(&sum.Deposited, &t.Deposited)
		sum.Estimated.Add(&sum.Estimated, &t.Estimated)
		sum.Claimed.Add(&sum.Claimed, &t.Claimed)
	}
	return sum
}

// Sums are the totals of owners and of users; an address may be both.
type Sums struct {
	Owners, Users AllTotals
	// Seen is when members were first seen, in Unix seconds. Addresses that are not users are missing.
	Seen map[common.Address]uint64
}

// SumsOf reads totals at the pin's block.
func SumsOf(ctx context.Context, p *Pin, of Whose) (*Sums, error) {
	if !p.AsOf && of.count() <= mostShared {
		return of.together(ctx, p)
	}
	sums, err := of.at(ctx, p, p.Block)
	return sums[0], err
}

func (w *Whose) count() int { return len(w.Owners) + len(w.Users) + len(w.Members) }

// at reads the totals at some blocks, which are at most the pin's, in one query: one part for each, because the engine
// would read everything between the blocks for a single condition.
func (w *Whose) at(ctx context.Context, p *Pin, blocks ...uint64) ([]*Sums, error) {
	asked, out := make([]ofSteps, len(blocks)), make([]*Sums, len(blocks))
	for i, block := range blocks {
		asked[i], out[i] = ofSteps{*w, block, block < p.snapshot.Block}, newSums()
	}
	rows, err := steps.RowsOfEach(ctx, p, asked...)
	for i := range rows {
		out[i] = validAt(rows[i], blocks[i])
	}
	return out, err
}

// stepName is what a row of totals is looked up by: its list, and its owner or the member.
type stepName struct {
	list string
	of   Member
}

func (w *Whose) names() []stepName {
	names := make([]stepName, 0, w.count())
	for _, owner := range w.Owners {
		names = append(names, stepName{"totals", Member{User: owner}})
	}
	for _, user := range w.Users {
		names = append(names, stepName{"user_totals", Member{User: user}})
	}
	for _, member := range w.Members {
		names = append(names, stepName{"members", member})
	}
	return names
}

// name returns what a row is looked up by; false for that of the cursor.
func (r *stepRow) name() (stepName, bool) {
	if r.List == "members" {
		return stepName{r.List, Member{r.Owner, r.User}}, true
	}
	return stepName{r.List, Member{User: r.Owner}}, !r.isCursor()
}

// readSteps reads the rows with some names, at the block of a pin.
func readSteps(ctx context.Context, p *Pin, names []stepName) ([]stepRow, error) {
	args := ofSteps{At: p.Block}
	for _, name := range names {
		switch name.list {
		case "totals":
			args.Owners = append(args.Owners, name.of.User)
		case "user_totals":
			args.Users = append(args.Users, name.of.User)
		default:
			args.Members = append(args.Members, name.of)
		}
	}
	return steps.all(ctx, p, nil, args)
}

// ofOwner reports whether a name is one of few: a vault, a partner or everything.
func ofOwner(name stepName) bool { return name.list == "totals" }

// withVaults adds all vaults, and everything, if one of these is requested: other answers at the snapshot need them,
// and planning the statement takes longer than reading them.
func (w *Whose) withVaults(p *Pin) *Whose {
	ofVault := func(owner common.Address) bool { return owner == common.Address{} || p.Rank(owner) >= 0 }
	if !slices.ContainsFunc(w.Owners, ofVault) {
		return w
	}
	all := *w
	all.Owners = slices.Concat(slices.DeleteFunc(slices.Clone(w.Owners), ofVault), state.Addresses(p.Vaults),
		[]common.Address{{}})
	return &all
}

// together reads the rows at the newest block, together with those of other answers.
func (w *Whose) together(ctx context.Context, p *Pin) (*Sums, error) {
	p.dependsOn(steps.keys(reflect.ValueOf(ofSteps{Whose: *w})))
	parts, err := shared(p, readSteps, (*stepRow).name, ofOwner).get(ctx, w.withVaults(p).names())
	if err != nil {
		return newSums(), err
	}
	own := make(map[stepName]bool, w.count())
	for _, name := range w.names() {
		own[name] = true
	}
	var rows []stepRow
	for _, part := range parts {
		for _, r := range withoutCursors(p, part) {
			if name, _ := r.name(); own[name] {
				rows = append(rows, r)
			}
		}
	}
	return validAt(rows, p.Block), nil
}

// TotalsOf reads the totals of vaults and partners (readmodel.PartnerOwner), or of everything (zero), at the pin's
// block.
func TotalsOf(ctx context.Context, p *Pin, owners ...common.Address) (AllTotals, error) {
	sums, err := SumsOf(ctx, p, Whose{Owners: owners})
	return sums.Owners, err
}

// Between reads totals at the last of some blocks, which is at most the pin's, and before the first: the difference
// covers these blocks.
func Between(ctx context.Context, p *Pin, of Whose, in Blocks) (upTo, before *Sums, err error) {
	switch {
	case in.First == 0 && in.Last == p.Block:
		upTo, err = SumsOf(ctx, p, of)
		return upTo, newSums(), err
	case in.First == 0:
		sums, err := of.at(ctx, p, in.Last)
		return sums[0], newSums(), err
	}
	sums, err := of.at(ctx, p, in.Last, in.First-1)
	return sums[0], sums[1], err
}

// Growth returns by how much a number of the totals grew in some blocks, which may be none.
func Growth(ctx context.Context, p *Pin, of Whose, in Blocks, number func(*Sums) uint64) (int64, error) {
	if in.Last < in.First {
		return 0, nil
	}
	upTo, before, err := Between(ctx, p, of, in)
	return int64(number(upTo)) - int64(number(before)), err
}

// UserTotals reads the totals of users at the pin's block.
func UserTotals(ctx context.Context, p *Pin, users ...common.Address) (AllTotals, error) {
	sums, err := SumsOf(ctx, p, Whose{Users: users})
	return sums.Users, err
}

// IsMember reports whether an address is a user of a vault, or of any vault if it is zero.
func IsMember(ctx context.Context, p *Pin, user, vault common.Address) (bool, error) {
	sums, err := SumsOf(ctx, p, Whose{Members: []Member{{vault, user}}})
	_, ok := sums.Seen[user]
	return ok, err
}

// step is the key that all rows of one step of some totals share, or all rows of a member.
type step struct {
	list        string
	of          Holding
	user        common.Address
	from, until uint64
}

func newSums() *Sums { return &Sums{AllTotals{}, AllTotals{}, map[common.Address]uint64{}} }

// validAt returns the steps that are valid at a block. The rows of a step add up, because a replaced step remains until
// a merge removes it.
func validAt(rows []stepRow, block uint64) *Sums {
	live, sums, seen := map[step]int{}, map[step]*Totals{}, map[step]uint64{}
	for i := range rows {
		r := &rows[i]
		at := step{r.List, Holding{r.Owner, r.Scope}, r.User, r.From, r.Key.Uint64()}
		if sums[at] == nil {
			sums[at] = new(Totals)
		}
		live[at] += int(r.Sign)
		seen[at] += uint64(r.Sign) * uint64(r.Time)
		sums[at].add(r.Sign, &r.Totals)
	}
	out := newSums()
	for at, t := range sums {
		switch {
		case live[at] <= 0:
		case at.list == "members":
			out.Seen[at.user] = seen[at]
		case at.from <= block && block < at.until:
			out.of(at.list)[at.of] = t
		}
	}
	return out
}

func (s *Sums) of(list string) AllTotals {
	if list == "user_totals" {
		return s.Users
	}
	return s.Owners
}

// add adds other totals, or subtracts them if the sign is -1.
func (t *Totals) add(sign int8, o *Totals) {
	long, short := uint64(sign), uint32(sign) // -1 becomes the highest number, so that adding it subtracts one
	t.Deposits += long * o.Deposits
	t.Requests += long * o.Requests
	t.Claims += long * o.Claims
	t.Users += long * o.Users
	t.Swept += long * o.Swept
	t.SweptTo += long * o.SweptTo
	t.LastSweep += short * o.LastSweep
	t.Navs += long * o.Navs
	t.Block += long * o.Block
	t.LogIndex += short * o.LogIndex
	t.Time += short * o.Time
	add := (*big.Int).Add
	if sign < 0 {
		add = (*big.Int).Sub
	}
	for _, sum := range []struct{ of, by *big.Int }{
		{&t.Deposited, &o.Deposited}, {&t.Estimated, &o.Estimated}, {&t.Claimed, &o.Claimed},
		{&t.SweptAssets, &o.SweptAssets}, {&t.PerShare, &o.PerShare}, {&t.Assets, &o.Assets}, {&t.Supply, &o.Supply},
	} {
		add(sum.of, sum.of, sum.by)
	}
}

// Number parses an Int256 as the engine writes it.
func Number(s string) *big.Int {
	n, _ := new(big.Int).SetString(s, 10)
	if n == nil {
		n = new(big.Int)
	}
	return n
}

const Valuation Word = "valuation"

// OfVault selects the events of one kind of a vault in some blocks. If Timed is set, only those with a time of at most
// At (Unix seconds) count.
type OfVault struct {
	Vault common.Address `ask:"vault" reads:"page.*"`
	Kind  Word           `ask:"kind"`
	Blocks
	Timed  bool  `ask:"timed"`
	At     int64 `ask:"at"`
	Oldest bool  `ask:"oldest"` // oldest first; for FirstOfEach only
}

// VaultEvent is an event of a vault. Of a NAV update it has the price per share with 18 decimals, assets and shares in
// native units, and the time in Unix seconds.
type VaultEvent struct {
	Entry
	Time        uint32      `ch:"ts"`
	Tx          common.Hash `ch:"hash"`
	NavPerShare string      `ch:"nav_per_share" sql:"toString(nav)"`
	TotalAssets string      `ch:"total_assets" sql:"toString(assets)"`
	TotalSupply string      `ch:"total_supply" sql:"toString(shares)"`
}

// VaultEvents is a page of a vault's events of one kind, newest first.
var VaultEvents = NewPage[OfVault, VaultEvent]("vault_events", state.SQL(files, "sql/vault_events"), NewestFirst).
	Deep().Long()

// NAV is the newest NAV update of a vault, with the price per share with 18 decimals, assets and supply in native
// units, and the time in Unix seconds.
type NAV struct {
	Block    uint64  `ch:"valued_block"`
	LogIndex uint32  `ch:"valued_log"`
	Time     uint32  `ch:"valued_ts"`
	PerShare big.Int `ch:"nav"`
	Assets   big.Int `ch:"assets"`
	Supply   big.Int `ch:"shares"`
}

// NewestNavs returns the newest NAV update of each vault of the pin, or nil if it has none.
func NewestNavs(ctx context.Context, p *Pin) ([]*NAV, error) {
	vaults, navs := state.Addresses(p.Vaults), make([]*NAV, len(p.Vaults))
	totals, err := TotalsOf(ctx, p, vaults...)
	for i, v := range vaults {
		navs[i] = totals.Of(v, v).NewestNav()
	}
	return navs, err
}

// ofQueue selects the queue of a vault, or of all if it is zero.
type ofQueue struct {
	Vault common.Address `ask:"vault" reads:"queue"`
	Past  bool           `ask:"past"`
}

type queueRow struct {
	Mark
	Vault common.Address `ch:"vault"`
	Queued
	Lapses uint64 `ch:"lapses"`
}

var queue = New[ofQueue, queueRow](state.SQL(files, "sql/queue"))

// Queued describes the queue of a vault at a block: the pending and claimable requests that have not lapsed, the
// pending ones, and the sum of their estimates in native units.
type Queued struct {
	Total    uint64 `ch:"total"`
	Unfunded uint64 `ch:"unfunded"`
	Estimate string `ch:"unfunded_estimate"`
}

// Queue counts the queue of one vault, or of each if vault is nil. Vaults without requests are not in the map. Answers
// about the newest block share the count of all vaults: for one vault, the engine reads as much.
func Queue(ctx context.Context, p *Pin, vault *common.Address) (map[common.Address]Queued, error) {
	args := ofQueue{Past: p.AsOf}
	if vault != nil {
		args.Vault = *vault
	}
	rows, err := args.rows(ctx, p)
	out := make(map[common.Address]Queued, len(rows))
	for _, r := range rows {
		if vault == nil || r.Vault == *vault {
			out[r.Vault] = r.Queued
			p.Lapses(r.Lapses)
		}
	}
	return out, err
}

// allQueues is the name of the only look-up of the queue.
type allQueues struct{}

func (a ofQueue) rows(ctx context.Context, p *Pin) ([]queueRow, error) {
	if p.AsOf {
		return queue.Rows(ctx, p, a)
	}
	p.dependsOn(queue.keys(reflect.ValueOf(a)))
	read := func(ctx context.Context, newest *Pin, _ []allQueues) ([]queueRow, error) {
		return queue.all(ctx, newest, nil, ofQueue{})
	}
	name := func(r *queueRow) (allQueues, bool) { return allQueues{}, !r.isCursor() }
	parts, err := shared(p, read, name, func(allQueues) bool { return true }).get(ctx, []allQueues{{}})
	if err != nil {
		return nil, err
	}
	return withoutCursors(p, parts[0]), nil
}
