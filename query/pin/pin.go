package pin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Pin is the state that one answer is about: the log up to Seq, the chain up to
// Block. Its methods may be called by several goroutines at once.
type Pin struct {
	Seq     uint64
	Block   uint64
	AsOf    bool // Block is not the newest one
	Vaults  []Vault
	ChainID uint64

	snapshot *Snapshot

	clock sync.Mutex
	time  uint64 // of the newest block record up to Block, once it was asked for

	seen   sync.Mutex
	fences []readmodel.Fence
	proven uint64 // up to this seq no unit changed what is so at Block
	ahead  uint64 // the highest seq of a table that can only tell the newest state
}

// RangeError says why asOfBlock names no block that there is an answer about.
type RangeError struct{ Reason string }

func (e *RangeError) Error() string { return "asOfBlock " + e.Reason }

// At pins an answer to the newest block, or to a past one. The error is a *RangeError.
func (s *Snapshot) At(asOfBlock *uint64) (*Pin, error) {
	switch {
	case asOfBlock == nil:
		return s.pin(s.Block, false), nil
	case *asOfBlock > s.Block:
		return nil, &RangeError{s.Range()}
	case *asOfBlock < s.First:
		return nil, &RangeError{"is before the first indexed block"}
	}
	return s.pin(*asOfBlock, true), nil
}

// Range says which blocks there are answers about.
func (s *Snapshot) Range() string {
	return fmt.Sprintf("must be a block from the first indexed one to %d", s.Block)
}

func (s *Snapshot) pin(block uint64, asOf bool) *Pin {
	return &Pin{Seq: s.Seq, Block: block, AsOf: asOf, proven: s.Seq, Vaults: s.Vaults, ChainID: s.chainID, snapshot: s}
}

// Generation is the number of the generation that the pin is in.
func (p *Pin) Generation() int32 { return p.snapshot.Generation }

// Vault finds a vault by its address.
func (p *Pin) Vault(address common.Address) (*Vault, bool) {
	i := p.Rank(address)
	if i < 0 {
		return nil, false
	}
	return &p.Vaults[i], true
}

// Left reports whether a vault left navlog and the generation was made without it.
func (p *Pin) Left(address common.Address) bool {
	return slices.ContainsFunc(p.snapshot.Absent, func(v Vault) bool { return v.Address == address && v.Removed })
}

// Rank is the place of a vault in the list of vaults, -1 where it is not there.
func (p *Pin) Rank(address common.Address) int {
	return slices.IndexFunc(p.Vaults, func(v Vault) bool { return v.Address == address })
}

// Written are the address of a vault as answers write it, and its display name.
func (p *Pin) Written(address common.Address) (written, name string) {
	if v, ok := p.Vault(address); ok {
		return v.Written, v.Name
	}
	return address.Hex(), ""
}

// Wanted are the vaults that a filter lets through, in the order of the list; nil
// lets all through.
func (p *Pin) Wanted(filter *common.Address) []Vault {
	if filter == nil {
		return p.Vaults
	}
	if v, ok := p.Vault(*filter); ok {
		return []Vault{*v}
	}
	return nil
}

// Now is the time by which expiry is judged, in Unix seconds: that of the newest
// block record up to Block. Of a past block it is asked for once.
func (p *Pin) Now(ctx context.Context) (uint64, error) {
	if !p.AsOf {
		return p.snapshot.Time, nil
	}
	p.clock.Lock()
	defer p.clock.Unlock()
	if p.time == 0 {
		newest, _, err := newestBlock(ctx, p.snapshot.source, p.Seq, p.Block)
		if err != nil {
			return 0, err
		}
		p.time = uint64(newest.Time)
	}
	return p.time, nil
}

// See keeps the fence that a question to a derived table read among its rows.
func (p *Pin) See(fence readmodel.Fence) { p.SeeCursor(0, fence) }

// SeeCursor is See for a table that can only tell the newest state, as the lists of
// users by totals are: seq is that of its cursor, and must not be above the pin's.
func (p *Pin) SeeCursor(seq uint64, fence readmodel.Fence) {
	p.seen.Lock()
	defer p.seen.Unlock()
	p.fences = append(p.fences, fence)
	p.ahead = max(p.ahead, seq)
}

// Settled tells, amid a long answer, whether all that its questions read so far is what the
// log up to Seq says of Block. The error is ErrNotYet: what was made since it was last asked
// must not be used.
//
// Each fence speaks of one rewriting unit, and names the one before it. So they are looked at
// in the order of the log: where one left Block as it was, the next one may count on that.
// There may have been others which no question saw. The spine has all that are named, for no
// table is ahead of it by more than one, and is asked whether they left Block as it was.
func (p *Pin) Settled(ctx context.Context) error {
	type row struct {
		Seq uint64 `ch:"seq"`
	}
	p.seen.Lock()
	defer p.seen.Unlock()
	if _, _, torn := p.judge(); torn {
		last := p.fences[len(p.fences)-1]
		if p.ahead > p.Seq || p.Block > last.Block {
			return ErrNotYet
		}
		_, rewritten, err := AskOne[row](ctx, p, sqlRewritten, Args{"proven": p.proven, "until": last.Before})
		if err != nil {
			return err
		}
		if rewritten {
			return ErrNotYet
		}
		p.proven = last.Seq
	}
	p.fences = p.fences[:0]
	return nil
}

// torn tells whether the questions may have read something else than what the log up to Seq
// says of Block: of a unit after Seq, or of another belief. Then until is the seq that a
// snapshot must have to be right, and agreed the newest block about which both beliefs say
// the same.
func (p *Pin) torn() (until, agreed uint64, torn bool) {
	p.seen.Lock()
	defer p.seen.Unlock()
	return p.judge()
}

// judge is torn for who holds seen.
func (p *Pin) judge() (until, agreed uint64, torn bool) {
	agreed = p.Block
	if p.ahead > p.Seq {
		until, torn = p.ahead, true
	}
	slices.SortFunc(p.fences, func(a, b readmodel.Fence) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, fence := range p.fences {
		if fence.Holds(p.proven, p.Block) {
			p.proven = max(p.proven, fence.Seq)
		} else {
			until, agreed, torn = max(until, fence.Seq), min(agreed, fence.Block), true
		}
	}
	return until, agreed, torn
}
