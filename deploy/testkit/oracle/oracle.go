package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// A State is what is true at one block: the fold of all facts up to it.
type State struct {
	history *History
	block   uint64
	now     uint64 // Unix seconds: the block's time
	vaults  map[common.Address]*vaultState
	users   map[common.Address]*userState
	// total paid to each owner of a claim, whether a user or not: by vault, and under the zero address over all vaults
	paid map[[2]common.Address]*big.Int
	// in chain order, over all vaults
	deposits []*depositState
	requests []*requestState
	claims   []claimState
	navs     []navState
}

type vaultState struct {
	vault
	deposits []*depositState
	requests map[uint64]*requestState
	users    map[common.Address]*userState // with their totals in this vault
	sweptTo  uint64                        // the highest deposit number in a sweep
	supply   *big.Int                      // minted less burned, of a vault with a preset
	// Shares of each owner's requests in a vault of the preset erc7540, and those of them that were claimed.
	requested, claimed map[common.Address]*big.Int
	lastSweep          uint64 // Unix seconds, 0 = never
	lastNav            *navState
}

type userState struct {
	address    common.Address
	firstBlock uint64 // of the first deposit or request
	firstSeen  uint64 // Unix seconds: the time of firstBlock
	deposited  *big.Int
	withdrawn  *big.Int
}

type depositState struct {
	Fact
	contracts.DepositAccepted
	sweptAt uint64 // Unix seconds, 0 = not swept
}

// A requestState is the state of a withdrawal request since its event. At most one of claimedAt, cancelledAt and
// expiredAt is set: the first of these events ends the request.
type requestState struct {
	Fact
	contracts.WithdrawalRequested
	// Unix seconds, 0 = never
	fundedAt, claimedAt, cancelledAt, expiredAt uint64
	fundedAssets, claimedAssets                 *big.Int
	// until is the sum of the shares that its owner requested in a vault of the preset erc7540 up to this request.
	until *big.Int
}

// ended reports whether an event has ended the request: later events do not change it. Expiry by time is no such end,
// because an expired request can still be funded.
func (r *requestState) ended() bool {
	return r.claimedAt != 0 || r.cancelledAt != 0 || r.expiredAt != 0
}

// A claimState is a payment: a claim, or what was withdrawn without a request. If a claim names no owner, the owner of
// its request was paid.
type claimState struct {
	Fact
	Assets *big.Int
	owner  common.Address
}

type navState struct {
	Fact
	contracts.NavUpdated
}

// at folds the facts up to a block. The reference contracts cannot contradict themselves, so a contradiction means that
// the facts were read incorrectly and is an error, unless the history is known to be of other contracts.
func (h *History) at(block uint64) (*State, error) {
	if block > h.Head() {
		return nil, fmt.Errorf("block %d is beyond the newest block %d", block, h.Head())
	}
	s := &State{
		history: h, block: block, now: h.Times[block],
		vaults: map[common.Address]*vaultState{}, users: map[common.Address]*userState{},
		paid: map[[2]common.Address]*big.Int{},
	}
	for _, v := range h.vaults {
		s.vaults[v.address] = &vaultState{vault: v, supply: new(big.Int), requests: map[uint64]*requestState{},
			users: map[common.Address]*userState{}, requested: map[common.Address]*big.Int{},
			claimed: map[common.Address]*big.Int{}}
	}
	for _, f := range h.Facts {
		if f.Block > block {
			break
		}
		if err := s.apply(f); err != nil {
			return nil, fmt.Errorf("log %d of block %d of the vault %s, %T: %w", f.Index, f.Block, f.Vault, f.Event, err)
		}
	}
	return s, nil
}

func (s *State) apply(f Fact) error {
	v := s.vaults[f.Vault]
	if v == nil {
		return fmt.Errorf("the vault is not known")
	}
	if v.preset != "" {
		return s.applyShares(v, f)
	}
	switch e := f.Event.(type) {
	case contracts.DepositAccepted:
		return s.deposit(v, &depositState{Fact: f, DepositAccepted: e})
	case contracts.DepositsSwept:
		return s.sweep(v, f, e)
	case contracts.NavUpdated:
		s.valued(v, navState{f, e})
		return nil
	case contracts.WithdrawalRequested:
		return s.request(v, &requestState{Fact: f, WithdrawalRequested: e})
	case contracts.WithdrawalFunded:
		return s.change(v, e.RequestIndex, func(r *requestState) error {
			if r.fundedAt == 0 {
				r.fundedAt, r.fundedAssets = f.Time, e.Assets
				return nil
			}
			return s.contradiction("it was funded before")
		})
	case contracts.WithdrawalClaimed:
		owner := e.Owner
		if r := v.requests[e.RequestIndex.Uint64()]; r != nil && owner == (common.Address{}) {
			owner = r.Owner
		}
		s.pay(v, claimState{f, e.Assets, owner})
		return s.change(v, e.RequestIndex, func(r *requestState) error {
			r.claimedAt, r.claimedAssets = f.Time, e.Assets
			return nil
		})
	case contracts.WithdrawalCancelled:
		return s.change(v, e.RequestIndex, func(r *requestState) error { r.cancelledAt = f.Time; return nil })
	case contracts.WithdrawalExpired:
		return s.change(v, e.RequestIndex, func(r *requestState) error { r.expiredAt = f.Time; return nil })
	}
	return fmt.Errorf("the oracle has no rule for it")
}

// applyShares applies a fact of a vault of the presets erc4626 and erc7540.
func (s *State) applyShares(v *vaultState, f Fact) error {
	switch e := f.Event.(type) {
	case contracts.DepositAccepted:
		return s.deposit(v, &depositState{Fact: f, DepositAccepted: e})
	case contracts.WithdrawalRequested:
		r := &requestState{Fact: f, WithdrawalRequested: e}
		r.until = new(big.Int).Add(amountOf(v.requested, e.Owner), e.Shares)
		v.requested[e.Owner] = r.until
		return s.request(v, r)
	case withdraw:
		s.pay(v, claimState{f, e.Assets, e.Owner})
		if v.preset == erc7540 {
			s.claimOldest(v, f, e)
			return nil
		}
		s.seen(v, e.Owner, f, new(big.Int))
	case transfer:
		switch none := (common.Address{}); none {
		case e.From:
			v.supply = new(big.Int).Add(v.supply, e.Value)
		case e.To:
			v.supply = new(big.Int).Sub(v.supply, e.Value)
		}
	case *event.Sample:
		s.valued(v, navState{f, v.measured(e)})
	default:
		return fmt.Errorf("the oracle has no rule for it")
	}
	return nil
}

// claimOldest ends the oldest requests of an owner, whose shares are claimed. Shares that were not requested claim
// nothing, and a request ends with its last share.
func (s *State) claimOldest(v *vaultState, f Fact, e withdraw) {
	claimed, requested := new(big.Int).Add(amountOf(v.claimed, e.Owner), e.Shares), amountOf(v.requested, e.Owner)
	if claimed.Cmp(requested) > 0 {
		claimed = requested
	}
	v.claimed[e.Owner] = claimed
	for _, r := range v.requests {
		if r.Owner == e.Owner && !r.ended() && r.until.Cmp(claimed) <= 0 {
			r.claimedAt = f.Time
		}
	}
}

// amountOf returns an owner's amount, 0 if there is none.
func amountOf(of map[common.Address]*big.Int, owner common.Address) *big.Int {
	if of[owner] == nil {
		return new(big.Int)
	}
	return of[owner]
}

// valued records a NAV.
func (s *State) valued(v *vaultState, n navState) {
	s.navs = append(s.navs, n)
	v.lastNav = &n
}

// pay records a payment.
func (s *State) pay(v *vaultState, c claimState) {
	s.claims = append(s.claims, c)
	for _, in := range []common.Address{v.address, {}} {
		sum := s.paidIn(in, c.owner)
		sum.Add(sum, c.Assets)
	}
}

// tooLarge is the smallest amount that is not valid, because sums of such amounts could exceed 256 bits.
var tooLarge = new(big.Int).Lsh(big.NewInt(1), 191)

// measured returns a sample with what follows from it and the supply, if the supply is a valid amount: the total assets
// are rounded down, and 0 if they are not a valid amount.
func (v *vaultState) measured(sample *event.Sample) contracts.NavUpdated {
	n := contracts.NavUpdated{TotalAssets: new(big.Int), TotalSupply: new(big.Int)}
	n.NavPerShare = new(big.Int).SetBytes(sample.GetAssets())
	if v.supply.Sign() > 0 && v.supply.Cmp(tooLarge) < 0 {
		n.TotalSupply = v.supply
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(sample.GetNavDigits())), nil)
	worth := new(big.Int).Mul(n.NavPerShare, n.TotalSupply)
	if worth.Quo(worth, unit); worth.Cmp(tooLarge) < 0 {
		n.TotalAssets = worth
	}
	return n
}

// contradiction returns the error for facts that cannot both be true, or nil if the history may contain such facts.
// Then the fold continues by the rules of the API: of two requests with one index the first counts; the first claim,
// cancellation or expiry after it ends it; events before the request or after its end do not change it. A deposit is
// swept by the first sweep whose last number is at least its own, or in its own block if it comes after that sweep.
func (s *State) contradiction(format string, args ...any) error {
	if s.history.contradictory {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// paidIn returns the sum of an owner's claims in a vault, or in all of them for the zero address, for the caller to add
// to. Claims that change no request count too, because the money has moved.
func (s *State) paidIn(vault, owner common.Address) *big.Int {
	key := [2]common.Address{vault, owner}
	if s.paid[key] == nil {
		s.paid[key] = new(big.Int)
	}
	return s.paid[key]
}

// seen makes the owner of a deposit or a request a user of the vault and of all vaults, and adds what was deposited.
func (s *State) seen(v *vaultState, owner common.Address, at Fact, deposited *big.Int) {
	for in, users := range map[common.Address]map[common.Address]*userState{v.address: v.users, {}: s.users} {
		u := users[owner]
		if u == nil {
			u = &userState{address: owner, firstBlock: at.Block, firstSeen: at.Time, deposited: new(big.Int),
				withdrawn: s.paidIn(in, owner)}
			users[owner] = u
		}
		u.deposited.Add(u.deposited, deposited)
	}
}

func (s *State) deposit(v *vaultState, d *depositState) error {
	v.deposits = append(v.deposits, d)
	s.deposits = append(s.deposits, d)
	s.seen(v, d.Owner, d.Fact, d.Assets)
	if d.DepositID.Uint64() <= v.sweptTo && v.sweptTo > 0 {
		d.sweptAt = d.Time
	}
	if d.DepositID.Cmp(big.NewInt(int64(len(v.deposits)))) != 0 {
		return s.contradiction("deposit %s is the vault's %d-th", d.DepositID, len(v.deposits))
	}
	return nil
}

func (s *State) sweep(v *vaultState, f Fact, e contracts.DepositsSwept) error {
	from, to, before := e.FromDepositID.Uint64(), e.ToDepositID.Uint64(), v.sweptTo
	v.sweptTo, v.lastSweep = max(before, to), f.Time
	sum := new(big.Int)
	for _, d := range v.deposits {
		id := d.DepositID.Uint64()
		if to > before && id <= to && d.sweptAt == 0 {
			d.sweptAt = f.Time
		}
		if from <= id && id <= to {
			sum.Add(sum, d.Assets)
		}
	}
	if from != before+1 || to < from || to > uint64(len(v.deposits)) {
		return s.contradiction("deposits %d to %d are swept after %d of %d", from, to, before, len(v.deposits))
	}
	if sum.Cmp(e.Assets) != 0 {
		return s.contradiction("the swept deposits sum to %s, the sweep says %s", sum, e.Assets)
	}
	return nil
}

func (s *State) request(v *vaultState, r *requestState) error {
	s.seen(v, r.Owner, r.Fact, new(big.Int))
	index := r.RequestIndex.Uint64()
	if v.requests[index] != nil {
		return s.contradiction("request %d comes after %d requests", index, len(v.requests))
	}
	v.requests[index] = r
	s.requests = append(s.requests, r)
	if index != uint64(len(v.requests)-1) {
		return s.contradiction("request %d comes after %d requests", index, len(v.requests)-1)
	}
	return nil
}

func (s *State) change(v *vaultState, index *big.Int, change func(*requestState) error) error {
	r := v.requests[index.Uint64()]
	switch {
	case r == nil:
		return s.contradiction("there is no request %s", index)
	case r.ended():
		return s.contradiction("request %s has ended before", index)
	}
	return change(r)
}

// status returns queued, claimed, cancelled or expired. A request that is not funded expires only by its time, and is
// queued again if it is funded after all.
func (s *State) status(r *requestState) string {
	switch {
	case r.claimedAt != 0:
		return "claimed"
	case r.cancelledAt != 0:
		return "cancelled"
	case r.expiredAt != 0:
		return "expired"
	case r.fundedAt == 0 && r.ExpiresAt != 0 && s.now >= r.ExpiresAt:
		return "expired"
	default:
		return "queued"
	}
}

// claimable reports whether the request is funded and has not been paid yet.
func (s *State) claimable(r *requestState) bool { return s.status(r) == "queued" && r.fundedAt != 0 }

// sorted returns users in an order of the API: by a key and then by address, so that the two orders of a key are
// each other's reverse.
func sorted(users map[common.Address]*userState, sortBy, sortOrder string) []*userState {
	key := func(a, b *userState) int {
		switch sortBy {
		case "totalDeposited":
			return a.deposited.Cmp(b.deposited)
		case "totalWithdrawn":
			return a.withdrawn.Cmp(b.withdrawn)
		default:
			return cmp.Compare(a.firstBlock, b.firstBlock)
		}
	}
	return slices.SortedFunc(maps.Values(users), func(a, b *userState) int {
		order := cmp.Or(key(a, b), a.address.Cmp(b.address))
		if sortOrder != "asc" {
			order = -order
		}
		return order
	})
}

// unswept returns the vault's deposits that no sweep has reached, oldest first; none if the vault has no sweeps.
func (v *vaultState) unswept() []*depositState {
	if v.preset != "" {
		return nil
	}
	return filter(v.deposits, func(d *depositState) bool { return d.sweptAt == 0 })
}
