package e2e

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts/reference"
)

// A state is what is true at one block: the fold of all facts up to it.
type state struct {
	history *history
	block   uint64
	now     uint64 // Unix seconds: the block's time
	vaults  map[common.Address]*vaultState
	users   map[common.Address]*userState
	// in chain order, over all vaults
	deposits []*depositState
	requests []*requestState
	navs     []navState
}

type vaultState struct {
	vault
	deposits  []*depositState
	requests  map[uint64]*requestState
	users     map[common.Address]bool
	sweptTo   uint64
	lastSweep uint64 // Unix seconds, 0 = never
	lastNav   *navState
}

type userState struct {
	address   common.Address
	firstSeen uint64 // Unix seconds
	deposited *big.Int
	withdrawn *big.Int
}

type depositState struct {
	fact
	*reference.ReferenceVaultDepositAccepted
	sweptAt uint64 // Unix seconds, 0 = not swept
}

type requestState struct {
	fact
	*reference.ReferenceVaultWithdrawalRequested
	// Unix seconds, 0 = never
	fundedAt, claimedAt, cancelledAt, expiredAt uint64
	fundedAssets, claimedAssets                 *big.Int
}

type navState struct {
	fact
	*reference.ReferenceVaultNavUpdated
}

// at folds the facts up to a block. The reference contracts cannot contradict themselves; where the facts do, something is
// wrong with the reading, and that is an error.
func (h *history) at(block uint64) (*state, error) {
	if block > h.head() {
		return nil, fmt.Errorf("block %d is beyond the newest block %d", block, h.head())
	}
	s := &state{
		history: h, block: block, now: h.times[block],
		vaults: map[common.Address]*vaultState{}, users: map[common.Address]*userState{},
	}
	for _, v := range h.vaults {
		s.vaults[v.address] = &vaultState{vault: v, requests: map[uint64]*requestState{}, users: map[common.Address]bool{}}
	}
	for _, f := range h.facts {
		if f.block > block {
			break
		}
		if err := s.apply(f); err != nil {
			return nil, fmt.Errorf("log %d of block %d of the vault %s, %T: %w", f.index, f.block, f.vault, f.event, err)
		}
	}
	return s, nil
}

func (s *state) apply(f fact) error {
	v := s.vaults[f.vault]
	if v == nil {
		return fmt.Errorf("the vault is not known")
	}
	switch e := f.event.(type) {
	case *reference.ReferenceVaultDepositAccepted:
		return s.deposit(v, &depositState{fact: f, ReferenceVaultDepositAccepted: e})
	case *reference.ReferenceVaultDepositsSwept:
		return v.sweep(f, e)
	case *reference.ReferenceVaultNavUpdated:
		n := navState{f, e}
		s.navs = append(s.navs, n)
		v.lastNav = &n
		return nil
	case *reference.ReferenceVaultWithdrawalRequested:
		return s.request(v, &requestState{fact: f, ReferenceVaultWithdrawalRequested: e})
	case *reference.ReferenceVaultWithdrawalFunded:
		return v.change(e.RequestIndex, func(r *requestState) { r.fundedAt, r.fundedAssets = f.time, e.Assets })
	case *reference.ReferenceVaultWithdrawalClaimed:
		if u := s.users[e.Owner]; u != nil {
			u.withdrawn = new(big.Int).Add(u.withdrawn, e.Assets)
		}
		return v.change(e.RequestIndex, func(r *requestState) { r.claimedAt, r.claimedAssets = f.time, e.Assets })
	case *reference.ReferenceVaultWithdrawalCancelled:
		return v.change(e.RequestIndex, func(r *requestState) { r.cancelledAt = f.time })
	case *reference.ReferenceVaultWithdrawalExpired:
		return v.change(e.RequestIndex, func(r *requestState) { r.expiredAt = f.time })
	}
	return fmt.Errorf("the oracle has no rule for it")
}

// seen makes the owner of a deposit or a request a user, of the vault and at all.
func (s *state) seen(v *vaultState, owner common.Address, at uint64) *userState {
	v.users[owner] = true
	u := s.users[owner]
	if u == nil {
		u = &userState{address: owner, firstSeen: at, deposited: new(big.Int), withdrawn: new(big.Int)}
		s.users[owner] = u
	}
	return u
}

func (s *state) deposit(v *vaultState, d *depositState) error {
	v.deposits = append(v.deposits, d)
	if d.DepositId.Cmp(big.NewInt(int64(len(v.deposits)))) != 0 {
		return fmt.Errorf("deposit %s is the vault's %d-th", d.DepositId, len(v.deposits))
	}
	s.deposits = append(s.deposits, d)
	u := s.seen(v, d.Owner, d.time)
	u.deposited = new(big.Int).Add(u.deposited, d.Assets)
	return nil
}

func (v *vaultState) sweep(f fact, e *reference.ReferenceVaultDepositsSwept) error {
	from, to := e.FromDepositId.Uint64(), e.ToDepositId.Uint64()
	if from != v.sweptTo+1 || to < from || to > uint64(len(v.deposits)) {
		return fmt.Errorf("deposits %d to %d are swept after %d of %d", from, to, v.sweptTo, len(v.deposits))
	}
	sum := new(big.Int)
	for _, d := range v.deposits[from-1 : to] {
		d.sweptAt = f.time
		sum.Add(sum, d.Assets)
	}
	if sum.Cmp(e.Assets) != 0 {
		return fmt.Errorf("the swept deposits sum to %s, the sweep says %s", sum, e.Assets)
	}
	v.sweptTo, v.lastSweep = to, f.time
	return nil
}

func (s *state) request(v *vaultState, r *requestState) error {
	index := r.RequestIndex.Uint64()
	if index != uint64(len(v.requests)) {
		return fmt.Errorf("request %d comes after %d requests", index, len(v.requests))
	}
	v.requests[index] = r
	s.requests = append(s.requests, r)
	s.seen(v, r.Owner, r.time)
	return nil
}

func (v *vaultState) change(index *big.Int, change func(*requestState)) error {
	r := v.requests[index.Uint64()]
	if r == nil {
		return fmt.Errorf("there is no request %s", index)
	}
	change(r)
	return nil
}

// status is one of queued, claimed, cancelled and expired. A request that nobody funded expires by time alone.
func (s *state) status(r *requestState) string {
	switch {
	case r.claimedAt != 0:
		return "claimed"
	case r.cancelledAt != 0:
		return "cancelled"
	case r.fundedAt != 0:
		return "queued"
	case r.expiredAt != 0, r.ExpiresAt != 0 && s.now >= r.ExpiresAt:
		return "expired"
	default:
		return "queued"
	}
}

// claimable says that the request is funded and nobody has been paid yet.
func (s *state) claimable(r *requestState) bool { return s.status(r) == "queued" && r.fundedAt != 0 }

// sorted gives the users in an order of the API: by a key, ties by address.
func (s *state) sorted(sortBy, sortOrder string) []*userState {
	key := func(a, b *userState) int {
		switch sortBy {
		case "totalDeposited":
			return a.deposited.Cmp(b.deposited)
		case "totalWithdrawn":
			return a.withdrawn.Cmp(b.withdrawn)
		default:
			return new(big.Int).SetUint64(a.firstSeen).Cmp(new(big.Int).SetUint64(b.firstSeen))
		}
	}
	return slices.SortedFunc(maps.Values(s.users), func(a, b *userState) int {
		order := key(a, b)
		if sortOrder != "asc" {
			order = -order
		}
		if order != 0 {
			return order
		}
		return a.address.Cmp(b.address)
	})
}

// unswept gives the vault's deposits after the last swept one, oldest first.
func (v *vaultState) unswept() []*depositState { return v.deposits[v.sweptTo:] }
