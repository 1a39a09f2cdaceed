package partner

import (
	"cmp"
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// atOnce is how many events are read at once.
const atOnce = 5000

type ofPartner struct {
	Partner common.Address `ask:"partner" reads:"page.*"`
	Kind    ask.Word       `ask:"kind"`
	ask.Blocks
}

var statementEvents = ask.NewPage[ofPartner, statementEvent]("partner_events", sqlStatementEvents, ask.OldestFirst)

// statementStream reads the partner's events of one kind in chain order, a page at a time.
type statementStream struct {
	args  ofPartner
	rows  []statementEvent // read but not consumed yet
	after *ask.Place       // the last one that was read
	done  bool             // there is nothing after rows
}

// newStreams returns streams of all events that may be in the statement: the partner's deposits and requests in the
// blocks of the range.
func (b *building) newStreams(ctx context.Context) (out []*statementStream, err error) {
	blocks, err := b.pin.Blocks(ctx, b.span.From, b.span.To)
	for _, kind := range []ask.Word{"deposit", "requested"} {
		out = append(out, &statementStream{args: ofPartner{readmodel.PartnerOwner(b.header.PartnerID), kind, blocks}})
	}
	return out, err
}

// next returns the next events of all streams, up to atOnce, in chain order.
func (b *building) next(ctx context.Context) (some []statementEvent, err error) {
	if b.streams == nil {
		if b.streams, err = b.newStreams(ctx); err != nil {
			return nil, err
		}
	}
	for len(some) < atOnce {
		var first *statementStream
		for _, s := range b.streams {
			if err := s.fill(ctx, b); err != nil {
				return nil, err
			}
			if len(s.rows) > 0 && (first == nil || inChain(&s.rows[0], &first.rows[0]) < 0) {
				first = s
			}
		}
		if first == nil {
			return some, nil
		}
		some, first.rows = append(some, first.rows[0]), first.rows[1:]
	}
	return some, nil
}

// fill reads pages until there is an event to consume, or nothing more.
func (s *statementStream) fill(ctx context.Context, b *building) error {
	for len(s.rows) == 0 && !s.done {
		page, last, err := statementEvents.After(ctx, b.pin, s.args, s.after, atOnce)
		if err != nil {
			return err
		}
		s.after, s.done = last, len(page) < atOnce
		s.rows = slices.DeleteFunc(page, func(e statementEvent) bool { return !b.counts(&e) })
	}
	return nil
}

// counts reports whether an event belongs to a vault of the statement.
func (b *building) counts(e *statementEvent) bool {
	return slices.ContainsFunc(b.vaults,
		func(v state.Vault) bool { return v.Address == e.Vault && e.Block >= v.StartBlock })
}

func inChain(a, b *statementEvent) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex), cmp.Compare(a.Sub, b.Sub))
}
