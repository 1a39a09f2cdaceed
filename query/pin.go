package query

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/ethereum/go-ethereum/common"
)

// pin is the state that one answer is about.
type pin struct {
	generation
	seq      uint64
	block    uint64           // newest indexed block, or the one asked for by asOfBlock
	clock    *lazy[uint64]    // of the newest indexed block up to block, Unix seconds
	standing *lazy[*standing] // of the vaults, where asOf
	asOf     bool             // asOfBlock was given: facts of later blocks do not count
	horizon  uint64           // where asOf, a seq that no log of a block up to block is after
	vaults   []vault
	navs     map[common.Address]navRow // the newest of each vault, where it is known; nil: ask
	head     *head                     // what others ask about the same pin too; nil: this is not the newest block
}

// pin is the snapshot itself.
func (s *snapshot) pin() *pin {
	p := &pin{generation: s.generation, seq: s.seq, block: s.block, clock: newLazy[uint64](), vaults: s.vaults, navs: s.navs, head: s.head}
	p.clock.set(s.time)
	return p
}

// pin reads asOfBlock and asOfSeq, reports all bad parameters of the request,
// and decides the state that it is about.
func (x *exchange) pin() (*pin, error) {
	s := x.snapshot
	if s == nil {
		if err := x.params.err(); err != nil {
			return nil, err
		}
		return nil, unavailable("The read model is not there yet.", nil)
	}
	seq := x.params.height("asOfSeq", 1, s.seq, fmt.Sprintf("must be an integer from 1 to %d", s.seq))
	highest := s.block
	if seq != nil {
		highest = math.MaxUint64 // the chain may have been longer then: toBlock judges
	}
	block := x.params.height("asOfBlock", 0, highest, fmt.Sprintf("must be a block from the first indexed one to %d", s.block))
	if err := x.params.err(); err != nil {
		return nil, err
	}
	p := s.pin()
	if seq != nil {
		if err := p.toSeq(x.ctx, s, *seq); err != nil {
			return nil, err
		}
	}
	if block != nil {
		if err := x.toBlock(p, *block); err != nil {
			return nil, err
		}
	}
	maps.Copy(x.header, position(p.generation, p.seq, p.block))
	return p, nil
}

// toSeq moves the pin back to the last whole unit of the log up to seq.
func (p *pin) toSeq(ctx context.Context, s *snapshot, seq uint64) error {
	boundary, _, err := askOne[cursorRow](ctx, p.generation, sqlBoundary, named("seq", seq))
	if err != nil {
		return readFailure(err)
	}
	p.seq = boundary.Seq
	newest, ok, err := indexedBlock(ctx, p.generation, p.seq, math.MaxUint64)
	if err != nil {
		return readFailure(err)
	}
	if !ok {
		return invalidParameter(fault{"asOfSeq", "no block was indexed yet at that seq"})
	}
	p.block, p.vaults, p.navs, p.head = newest.Block, vaultsAt(s.records, p.seq), nil, nil
	p.clock = newLazy[uint64]()
	p.clock.set(uint64(newest.Time))
	return nil
}

// toBlock moves the pin back to a block of the chain.
func (x *exchange) toBlock(p *pin, block uint64) error {
	if block > p.block {
		return invalidParameter(fault{"asOfBlock", fmt.Sprintf("must not be above %d, the newest block at asOfSeq", p.block)})
	}
	first, err := x.firstBlock(p)
	if err != nil {
		return readFailure(err)
	}
	if block < first {
		return invalidParameter(fault{"asOfBlock", "is before the first indexed block"})
	}
	s, err := x.spans()
	if err != nil {
		return err
	}
	p.asOfBlock(block, s)
	return nil
}

// asOfBlock makes it a pin in the past.
func (p *pin) asOfBlock(block uint64, s *spans) {
	p.block, p.asOf, p.horizon, p.navs, p.head = block, true, s.lastLog(block), nil, nil
	p.clock, p.standing = newLazy[uint64](), newLazy[*standing]()
}

// firstBlock is the first indexed one.
func (x *exchange) firstBlock(p *pin) (uint64, error) {
	return shared(x, p, func(h *head) *lazy[uint64] { return h.first }, func(was *earlier[uint64]) (uint64, error) {
		if news := x.snapshot.news; was != nil && news != nil && was.seq == news.since && was.value < news.oldest {
			return was.value, nil
		}
		row, _, err := askWide[blockRow](x.ctx, p.generation, sqlFirstBlock, named("seq", p.seq)) // one at least: that of p.block
		return row.Block, err
	})
}

// now is the time by which expiry is judged, in Unix seconds: that of the
// newest indexed block up to the pin's.
func (x *exchange) now(p *pin) (uint64, error) {
	return p.clock.get(x.ctx, func() (uint64, error) {
		if at, ok, err := x.moment(p); err != nil || ok && at.time > 0 {
			return at.time, err
		}
		newest, _, err := indexedBlock(x.ctx, p.generation, p.seq, p.block)
		if err != nil {
			return 0, readFailure(err)
		}
		return uint64(newest.Time), nil
	})
}

// args are the parameters that hold a question to the pin.
func (p *pin) args(more ...param) []param {
	return append(more, named("seq", p.seq), named("lastLog", p.lastLog()), named("block", p.until()))
}

// lastLog is the seq up to which logs are looked for. Of those of a past block all are
// before a seq of about that time: the engine passes over parts that begin after it.
func (p *pin) lastLog() uint64 {
	if p.asOf {
		return min(p.seq, p.horizon)
	}
	return p.seq
}

// until is the last block whose facts count.
func (p *pin) until() uint64 {
	if p.asOf {
		return p.block
	}
	return math.MaxUint64
}

// vault finds a vault by the address in the path.
func (p *pin) vault(address common.Address) (*vault, error) {
	for i := range p.vaults {
		if p.vaults[i].address == address {
			return &p.vaults[i], nil
		}
	}
	return nil, notFound("There is no such vault.")
}

// written are the address of a vault as answers write it, and its display name.
func (p *pin) written(address common.Address) (written, name string) {
	if v, err := p.vault(address); err == nil {
		return v.written, v.name
	}
	return address.Hex(), ""
}

// wanted are the vaults that a filter lets through, in the order of the list.
func (p *pin) wanted(filter *common.Address) []vault {
	if filter == nil {
		return p.vaults
	}
	v, err := p.vault(*filter)
	if err != nil {
		return nil
	}
	return []vault{*v}
}

// pinned asks a question at the pin.
func pinned[T any](x *exchange, p *pin, question string, args ...param) ([]T, error) {
	args = p.args(args...)
	rows, err := ask[T](x.ctx, p.generation, needed(question, args), args...)
	if err != nil {
		return nil, readFailure(err)
	}
	return rows, nil
}

// pinnedOne is pinned for a question with at most one row.
func pinnedOne[T any](x *exchange, p *pin, question string, args ...param) (T, error) {
	rows, err := pinned[T](x, p, question, args...)
	if err != nil || len(rows) == 0 {
		var none T
		return none, err
	}
	return rows[0], nil
}

type totalRow struct {
	Total int64 `ch:"total"`
}

// total is the answer to a counting question. Signed rows make it signed; a
// negative one would be a broken read model and counts as nothing.
func total(x *exchange, p *pin, question string, args ...param) (int64, error) {
	r, err := pinnedOne[totalRow](x, p, question, args...)
	return max(r.Total, 0), err
}
