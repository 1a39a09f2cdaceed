package query

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// sweeps are those of every vault, in the order of the log. Nearly every answer
// about deposits asks for them, and they are few: a vault is swept when its
// custodian comes for the money. So they are read once, at 64 bytes each, and
// afterwards from block to block what is new.
type sweeps struct {
	seq    uint64 // up to which they are read
	vaults map[common.Address][]sweep
}

// sweep says when some deposits of a vault left for the custodian.
type sweep struct {
	seq, block uint64
	gone       uint64 // seq of the row that takes it back, or the highest there can be
	from, to   uint64 // ids of the deposits, both included
	highest    uint64 // id in this sweep or one before
	lowest     uint64 // id in this sweep or one after
	time       uint32 // Unix seconds
}

// sweepRow is a sweep, or with sign -1 what takes back the one at seq Retracts.
type sweepRow struct {
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"`
	Retracts uint64 `ch:"retracts"`
	Vault    string `ch:"vault"`
	From     uint64 `ch:"from_id"`
	To       uint64 `ch:"to_id"`
	Block    uint64 `ch:"block"`
	Time     uint32 `ch:"ts"`
}

// sweeps are all up to the snapshot, and so up to every pin of it.
func (x *exchange) sweeps() (*sweeps, error) {
	head := x.snapshot.head
	return ofHead(x, head.sweeps, func() (*sweeps, error) {
		known := new(sweeps)
		if was := head.sweeps.was; was != nil {
			known = was.value
		}
		newest := &pin{generation: x.snapshot.generation, seq: x.snapshot.seq}
		if x.snapshot.news.silent(known.seq, contracts.KindDepositsSwept) {
			return known.with(nil, newest.seq), nil
		}
		rows, err := pinned[sweepRow](x, newest, sqlSweeps, named("since", known.seq))
		if err != nil {
			return nil, err
		}
		return known.with(rows, newest.seq), nil
	})
}

// with are the sweeps after some more rows, up to a seq. What others read stays
// as it is.
func (s *sweeps) with(rows []sweepRow, seq uint64) *sweeps {
	next := &sweeps{seq, maps.Clone(s.vaults)}
	if next.vaults == nil {
		next.vaults = make(map[common.Address][]sweep)
	}
	copied := make(map[common.Address]bool)
	for _, r := range rows {
		vault := toAddress(r.Vault)
		if !copied[vault] {
			next.vaults[vault], copied[vault] = slices.Clone(next.vaults[vault]), true
		}
		list := next.vaults[vault]
		if r.Sign < 0 {
			if i, ok := slices.BinarySearchFunc(list, r.Retracts, func(w sweep, seq uint64) int { return cmp.Compare(w.seq, seq) }); ok {
				list[i].gone = r.Seq
			}
			continue
		}
		highest := r.To
		if len(list) > 0 {
			highest = max(highest, list[len(list)-1].highest)
		}
		list = append(list, sweep{seq: r.Seq, block: r.Block, gone: math.MaxUint64, from: r.From, to: r.To, highest: highest, lowest: r.From, time: r.Time})
		for i := len(list) - 2; i >= 0 && list[i].lowest > r.From; i-- { // mostly none: sweeps go on where the last one ended
			list[i].lowest = r.From
		}
		next.vaults[vault] = list
	}
	return next
}

// counts tells whether a sweep is there at a pin.
func (w *sweep) counts(p *pin) bool {
	return w.seq <= p.seq && p.seq < w.gone && w.block <= p.until()
}

// timeOf is the time of the first sweep at a pin that holds a deposit, in Unix
// seconds; 0 for none.
func (s *sweeps) timeOf(p *pin, vault common.Address, id uint64) uint32 {
	list := s.vaults[vault]
	first, _ := slices.BinarySearchFunc(list, id, func(w sweep, id uint64) int { return cmp.Compare(w.highest, id) })
	for _, w := range list[first:] {
		if w.lowest > id {
			break
		}
		if w.from <= id && id <= w.to && w.counts(p) {
			return w.time
		}
	}
	return 0
}

// lastSwept is how far the sweeps of a vault have come.
type lastSwept struct {
	id    uint64 // the highest of a deposit, 0 for none
	block uint64 // of the sweep that took it
	time  uint32 // of the last sweep, Unix seconds, 0 for none
}

// last is how far they have come at a pin.
func (s *sweeps) last(p *pin, vault common.Address) (out lastSwept) {
	for _, w := range s.vaults[vault] {
		if !w.counts(p) {
			continue
		}
		if w.to >= out.id {
			out.id, out.block = w.to, w.block
		}
		out.time = max(out.time, w.time)
	}
	return out
}
