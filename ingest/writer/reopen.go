package writer

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

// Reopen reads the whole log to build the window for a head at the ancestor, plus everything above it, and returns the
// published referrals there, including those that an unfinished resumption retracted.
func (w *Writer) Reopen(ctx context.Context, ancestor uint64,
	progress func(done, of uint64)) (published []*event.Record, err error) {
	w.State.Window = Window{}
	publishedTo := min(w.State.published, ancestor)
	w.State.floor = max(min(w.State.Final, publishedTo), ancestor-min(ancestor, w.Window))
	var unfinished []*event.Record
	wasPublished := func(r *event.Record) bool {
		return r.GetLog().GetBlockNumber() <= w.State.published && mayRefer(w.State.Mapped, r.GetLog())
	}
	err = chainlog.ReadAfter(ctx, w.ChainID, chainlog.Position{}, func(e chainlog.Entry) error {
		progress(min(e.GetSeq(), w.State.Seq), w.State.Seq)
		switch kind := e.GetDecision().GetKind(); {
		case kind == AcceptReorgClose:
			unfinished = nil
		case kind == AcceptReorgOpen && unfinished == nil:
			unfinished = []*event.Record{}
		case unfinished != nil && e.GetRetracts() != 0 && wasPublished(e.Record):
			unfinished = append(unfinished, e.Record)
		}
		if e.GetRetracts() != 0 || isNeeded(w.State.Mapped, e.Record, w.State.floor, publishedTo) {
			w.State.Window.Apply(e)
		}
		return nil
	}, w.Kafka.Options()...)
	for _, lost := range w.State.Window.Above(ancestor) {
		if wasPublished(lost.Record) {
			published = append(published, lost.Record)
		}
	}
	return append(unfinished, published...), err
}
