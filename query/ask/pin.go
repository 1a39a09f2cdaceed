package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Pin is the state that one answer is about: the log up to Seq, the chain up to Block. Its methods are safe for
// concurrent use.
type Pin struct {
	Seq     uint64
	Block   uint64
	AsOf    bool // Block is not the newest one
	Vaults  []state.Vault
	ChainID uint64

	snapshot *state.Snapshot

	clock sync.Mutex
	time  uint64 // of the newest block up to Block, once it was read

	mu       sync.Mutex
	rewrites uint64 // at the time of the pin
	stale    bool   // a question read another state, which may agree about Block
	seen     uint64 // the newest seq that such a question read
	gone     bool   // a question read a state that disagrees about Block
	keys     []readmodel.TouchedKey
	all      bool   // the answer depends on everything
	expiry   uint64 // when time by itself may change the answer, in Unix seconds; or Never
}

// RangeError explains why no answer can be given at asOfBlock.
type RangeError struct{ Reason string }

func (e *RangeError) Error() string { return "asOfBlock " + e.Reason }

// Newest pins an answer to the newest block.
func Newest(s *state.Snapshot) *Pin {
	return &Pin{Seq: s.Seq, Block: s.Block, Vaults: s.Vaults, ChainID: s.ChainID, snapshot: s, rewrites: s.Rewrites,
		expiry: readmodel.Never}
}

// At pins an answer to the newest block, or to a past one. The error is a *RangeError.
func At(s *state.Snapshot, asOfBlock *uint64) (*Pin, error) {
	p := Newest(s)
	switch {
	case asOfBlock == nil:
		return p, nil
	case *asOfBlock < s.First || *asOfBlock > s.Block:
		return nil, &RangeError{Range(s)}
	}
	p.Block, p.AsOf = *asOfBlock, true
	return p, nil
}

// Range describes the blocks that answers can be about.
func Range(s *state.Snapshot) string {
	return fmt.Sprintf("must be an indexed block, %d to %d", s.First, s.Block)
}

// Generation returns the number of the pin's generation.
func (p *Pin) Generation() int32 { return p.snapshot.Generation }

// Vault returns the vault with an address.
func (p *Pin) Vault(address common.Address) (*state.Vault, bool) {
	i := p.Rank(address)
	if i < 0 {
		return nil, false
	}
	return &p.Vaults[i], true
}

// Left reports whether a vault left navlog and the generation was built without it.
func (p *Pin) Left(address common.Address) bool {
	return slices.ContainsFunc(p.snapshot.Absent, func(v state.Vault) bool { return v.Address == address && v.Removed })
}

// VaultsAt returns the vaults in the log at a seq: see state.Snapshot.
func VaultsAt(ctx context.Context, p *Pin, seq uint64) ([]state.Vault, error) {
	return p.snapshot.VaultsAt(ctx, seq)
}

// Rank returns the index of a vault in the list of vaults, or -1 if it is not in the list.
func (p *Pin) Rank(address common.Address) int {
	return slices.IndexFunc(p.Vaults, func(v state.Vault) bool { return v.Address == address })
}

// Written returns the address of a vault in the form used in answers, and its display name.
func (p *Pin) Written(address common.Address) (written, name string) {
	if v, ok := p.Vault(address); ok {
		return v.Written, v.Name
	}
	return address.Hex(), ""
}

// VaultsMatching returns the vaults that match a filter, in the order of the list; nil matches all.
func (p *Pin) VaultsMatching(filter *common.Address) []state.Vault {
	if filter == nil {
		return p.Vaults
	}
	if v, ok := p.Vault(*filter); ok {
		return []state.Vault{*v}
	}
	return nil
}

// Only returns the vault that a list is filtered by, as an argument of a question: the zero address for none, which
// selects all vaults, and an address that no row has for an unknown vault.
func (p *Pin) Only(filter *common.Address) common.Address {
	switch {
	case filter == nil:
		return common.Address{}
	case p.Rank(*filter) < 0:
		return common.MaxAddress
	}
	return *filter
}

// saw compares the cursor that a question read with the pin. If a list is only valid for the newest block, the cursor
// read with it must have the pin's seq.
func (p *Pin) saw(m *Mark, newest bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.Seq < p.Seq, newest && m.Seq != p.Seq: // the generation has lost its newest part, or has more
		p.gone = true
	case m.Rewrites != p.rewrites:
		p.stale, p.seen = true, max(p.seen, m.Seq)
	}
}

// dependsOn adds the keys that a question read; none means everything.
func (p *Pin) dependsOn(keys []readmodel.TouchedKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(keys) == 0 {
		p.all = true
		return
	}
	p.keys = append(p.keys, keys...)
}

// Lapses records that the answer may change at a time, in Unix seconds, although nothing that it read changes: when
// an open request that it shows or counts lapses. 0 is never.
func (p *Pin) Lapses(at uint64) {
	if at == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expiry = min(p.expiry, at)
}

// Validity describes how long an answer holds.
type Validity struct {
	generation int32
	seq, block uint64
	time       uint64
	asOf, all  bool
	keys       []readmodel.TouchedKey
	expiry     uint64
}

// Validity returns the validity of what was read with the pin so far.
func (p *Pin) Validity() *Validity {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.Clone(p.keys)
	slices.SortFunc(keys, readmodel.TouchedKey.Compare)
	return &Validity{generation: p.snapshot.Generation, seq: p.snapshot.Seq, block: p.Block, time: p.snapshot.Time,
		asOf: p.AsOf, all: p.all, keys: slices.Compact(keys), expiry: p.expiry}
}

// Holds reports whether the answer is still right at a snapshot.
//
// An answer about the newest block holds until one of the lists that it read changes, or an open request that it
// shows lapses; one about a past block holds until that block is rewritten.
func (v *Validity) Holds(s *state.Snapshot) bool {
	switch {
	case s.Generation != v.generation:
		return false
	case s.Seq == v.seq:
		return true
	case v.asOf:
		return v.block <= s.Block && s.Kept(v.generation, v.seq, v.block)
	case v.all:
		return false
	}
	return s.Time >= v.time && s.Time < v.expiry && s.Unchanged(v.generation, v.seq, v.keys)
}

// At returns the position to report when the answer is served at a snapshot: generation, seq and block.
func (v *Validity) At(s *state.Snapshot) (generation int32, seq, block uint64) {
	if s.Seq < v.seq || !v.Holds(s) { // it was made at a newer one
		return v.generation, v.seq, v.block
	}
	if v.asOf {
		return v.generation, s.Seq, v.block
	}
	return v.generation, s.Seq, s.Block
}

// Size returns the approximate size of the validity in bytes.
func (v *Validity) Size() int { return 96 + 21*len(v.keys) }

// maxTries is how often an answer is attempted before it fails because of reorganisations.
const maxTries = 10

// ErrRewritten reports that the chain was reorganised during every attempt to make the answer.
var ErrRewritten = errors.New("the chain was reorganised each time that the answer was made")

// Answer makes an exact answer: it is pinned to a snapshot, and made again on a newer one if a question found the
// read model rewritten meanwhile. It returns the pin of the last attempt. use may be called several times; results
// and errors of earlier calls must be discarded.
func Answer(ctx context.Context, w *state.Watcher, s *state.Snapshot, asOfBlock *uint64,
	use func(context.Context, *Pin) error) (*Pin, error) {
	for try := 1; ; try++ {
		p, err := At(s, asOfBlock)
		if err != nil {
			return nil, err
		}
		err = use(ctx, p)
		if unsettled := p.Settled(ctx, w); unsettled == nil {
			return p, err
		} else if !errors.Is(unsettled, ErrRewritten) {
			return p, unsettled
		}
		if try == maxTries {
			return p, ErrRewritten
		}
		next, failed := w.Newer(ctx, s)
		switch {
		case failed != nil:
			return p, failed
		case next == nil || next.Partial:
			return p, ErrRewritten
		}
		s = next
	}
}

// Settled returns nil, during a long answer, if its questions so far read what the log has for Block. On ErrRewritten,
// everything read since the last call must be discarded. A rewriting unit above Block does not affect the answer.
func (p *Pin) Settled(ctx context.Context, w *state.Watcher) error {
	p.mu.Lock()
	stale, gone, seen := p.stale, p.gone, p.seen
	p.mu.Unlock()
	switch {
	case gone:
		return ErrRewritten
	case !stale:
		return nil
	}
	s, err := w.Newer(ctx, p.snapshot)
	if err == nil && s != nil && s.Seq < seen { // a question saw a unit that the snapshot does not show yet
		s, err = w.Newer(ctx, s)
	}
	if err != nil {
		return err
	}
	if s == nil || s.Seq < seen || !s.Kept(p.snapshot.Generation, p.snapshot.Seq, p.Block) {
		return ErrRewritten
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rewrites, p.stale = s.Rewrites, p.seen > s.Seq
	return nil
}

// NumberOrNil returns a number of an effect, or nil if its log does not contain the number. Tables have 0 in both
// cases, so 0 is a number only if the vault's mapping takes the field from every such log.
func (p *Pin) NumberOrNil(vault common.Address, kind mapping.Kind, field mapping.Fields, block uint64,
	number string) *string {
	if number == "0" && p.mayLack(vault, kind, field, block) {
		return nil
	}
	return &number
}

// AddressOrNil is NumberOrNil for an address.
func (p *Pin) AddressOrNil(vault common.Address, kind mapping.Kind, block uint64, address common.Address) *string {
	if address == (common.Address{}) && p.mayLack(vault, kind, mapping.Other, block) {
		return nil
	}
	return new(address.Hex())
}

func (p *Pin) mayLack(vault common.Address, kind mapping.Kind, field mapping.Fields, block uint64) bool {
	v, ok := p.Vault(vault)
	return ok && v.Mapped.Description.MayLack(kind, field, block)
}
