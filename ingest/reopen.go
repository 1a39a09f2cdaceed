package ingest

import (
	"context"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// The kinds of the decisions around the records that an operator retracts.
const (
	AcceptReorgOpen  = "accept-reorg:open"
	AcceptReorgClose = "accept-reorg:close"
)

// Reopen reads the whole log to build the window for a head at the ancestor, plus everything above the ancestor. It
// returns the published referrals above the ancestor, including those that an earlier, unfinished resumption retracted.
func (w *Writer) Reopen(ctx context.Context, ancestor uint64, progress func(done, of uint64)) (told []*event.Record, err error) {
	w.state.window = window{}
	toldTo := min(w.state.told, ancestor)
	w.state.floor = max(min(w.state.final, toldTo), ancestor-min(ancestor, w.Window))
	var unfinished []*event.Record
	wasTold := func(r *event.Record) bool {
		return r.GetLog().GetBlockNumber() <= w.state.told && mayRefer(w.state.mapped, r.GetLog())
	}
	err = chainlog.ReadAfter(ctx, w.ChainID, chainlog.Position{}, func(e chainlog.Entry) error {
		progress(min(e.GetSeq(), w.state.seq), w.state.seq)
		switch kind := e.GetDecision().GetKind(); {
		case kind == AcceptReorgClose:
			unfinished = nil
		case kind == AcceptReorgOpen && unfinished == nil:
			unfinished = []*event.Record{}
		case unfinished != nil && e.GetRetracts() != 0 && wasTold(e.Record):
			unfinished = append(unfinished, e.Record)
		}
		if e.GetRetracts() != 0 || matters(w.state.mapped, e.Record, w.state.floor, toldTo) {
			w.state.window.apply(e)
		}
		return nil
	}, w.Kafka.Options()...)
	for _, lost := range w.state.window.above(ancestor) {
		if wasTold(lost.Record) {
			told = append(told, lost.Record)
		}
	}
	return append(unfinished, told...), err
}
