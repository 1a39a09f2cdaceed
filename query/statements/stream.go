package statements

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

// atOnce is how many rows are read at once.
const atOnce = 5000

// stream reads one table in its own order, a page at a time. All of its events are in the
// order of the chain.
type stream struct {
	sql        string
	args       pin.Args
	withdrawal bool

	rows []event // read, and not taken yet
	last event   // the last one that was taken
	done bool    // there is nothing after rows
}

// streams read all that may be in the statement: the partner's deposits, and its requests in
// each vault.
func (b *building) streams() []*stream {
	args := func() pin.Args {
		return pin.Args{"partner": b.header.PartnerID, "until": b.place.Number, "few": uint64(atOnce),
			"after_block": b.place.Below, "after_log": uint32(0)}
	}
	out := []*stream{{sql: sqlDeposits, args: args()}}
	for _, v := range b.vaults {
		s := &stream{sql: sqlWithdrawals, args: args(), withdrawal: true}
		s.args["vault"], s.args["from_block"] = v.Address, b.place.Below
		s.args["after_index"], s.args["after_block"] = uint64(0), uint64(0)
		out = append(out, s)
	}
	return out
}

// next takes the next events of all streams, in the order of the chain: up to atOnce.
func (b *building) next(ctx context.Context, streams []*stream) (some []event, err error) {
	for len(some) < atOnce {
		var first *stream
		for _, s := range streams {
			if err := s.fill(ctx, b); err != nil {
				return nil, err
			}
			if len(s.rows) > 0 && (first == nil || inChain(s.rows[0], first.rows[0]) < 0) {
				first = s
			}
		}
		if first == nil {
			return some, nil
		}
		if inChain(first.rows[0], first.last) < 0 {
			return nil, httpapi.Internal(fmt.Errorf(
				"vault %s does not number its requests in the order of the chain: request %d", httpapi.ToAddress(first.rows[0].Vault), first.rows[0].RequestIndex))
		}
		first.last = first.rows[0]
		some, first.rows = append(some, first.last), first.rows[1:]
	}
	return some, nil
}

// fill reads pages until there is an event to take, or nothing more.
func (s *stream) fill(ctx context.Context, b *building) error {
	for len(s.rows) == 0 && !s.done {
		page, err := pin.Ask[event](ctx, b.pin, s.sql, s.args)
		if err != nil {
			return err
		}
		s.done = len(page) < atOnce
		if !s.done { // of the last log of a full page there may be more rows
			last := page[len(page)-1]
			page = page[:slices.IndexFunc(page, func(e event) bool { return sameLog(e, last) })]
			if len(page) == 0 {
				return httpapi.Internal(fmt.Errorf("log %d of block %d has more than %d rows", last.LogIndex, last.Block, atOnce))
			}
			last = page[len(page)-1]
			s.args["after_block"], s.args["after_log"] = last.Block, last.LogIndex
			if s.withdrawal {
				s.args["after_index"] = last.RequestIndex
			}
		}
		for i := range page {
			live := page[i].Sign > 0 && (i+1 == len(page) || !sameLog(page[i], page[i+1]))
			if page[i].withdrawal = s.withdrawal; live && b.counts(&page[i]) {
				s.rows = append(s.rows, page[i])
			}
		}
	}
	return nil
}

// counts reports whether an event is in the range, and of a vault of the statement.
func (b *building) counts(e *event) bool {
	if int64(e.Time) < b.span.From || int64(e.Time) > b.span.To {
		return false
	}
	address := httpapi.ToAddress(e.Vault)
	return slices.ContainsFunc(b.vaults, func(v pin.Vault) bool { return v.Address == address && e.Block >= v.StartBlock })
}

func inChain(a, b event) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
}

// sameLog reports whether two rows are about one place of the chain: of a log, its retraction,
// and the log that came in its place, the last one says what is live.
func sameLog(a, b event) bool { return inChain(a, b) == 0 && a.RequestIndex == b.RequestIndex }
