package events

import (
	"context"
	"fmt"
	"math"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

const mostSections = 1000

type reorganisationsJSON struct {
	FromBlock string `json:"fromBlock" file:"number"`
	ToBlock   string `json:"toBlock" file:"number"`
	Count     int64  `json:"count"`
	Logs      int64  `json:"logs"`
	Seq       string `json:"seq" file:"number"`
}

// reorganisationsMeta has the total number of reorganisations, including those of buckets that are left out.
type reorganisationsMeta struct {
	Total int64 `json:"total"`
}

type ofReorganisations struct {
	Width  uint64 `ask:"width"`
	Before uint64 `ask:"before"`
	Most   uint64 `ask:"most"`
}

type reorganisation struct {
	From  uint64 `ch:"from"`
	To    uint64 `ch:"to"`
	Count uint64 `ch:"count"`
	Logs  uint64 `ch:"logs"`
	Seq   uint64 `ch:"seq"`
	Total uint64 `ch:"total"`
}

var reorganisations = ask.New[ofReorganisations, reorganisation](state.SQL(files, "reorganisations"))

// Reorganisations returns the reorganisations that orphaned blocks up to a block, newest first by their first block.
// Those that begin in one bucket of `width` blocks are listed together, so that a chain of any length fits on a
// slider.
func Reorganisations(r *serve.Request) (*serve.Answer, error) {
	width := r.Params.Integer("width", 1, 1, math.MaxInt64,
		fmt.Sprintf("must be a number of blocks, 1 to %d", math.MaxInt64))
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofReorganisations{Width: width, Before: math.MaxUint64, Most: mostSections}
		m := reorganisationsMeta{}
		sections := func(ctx context.Context) ([]reorganisationsJSON, bool, error) {
			rows, err := reorganisations.Rows(ctx, p, args)
			out := make([]reorganisationsJSON, len(rows))
			for i, row := range rows {
				out[i] = reorganisationsJSON{serve.Decimal(row.From), serve.Decimal(row.To), int64(row.Count), int64(row.Logs),
					serve.Decimal(row.Seq)}
				m.Total = int64(row.Total)
				args.Before = row.From / width
			}
			return out, uint64(len(rows)) == args.Most, err
		}
		if r.AsFile() { // a file has the older buckets too
			args.Most = uint64(r.Params.PageSize())
			return serve.Whole(ctx, r, p, sections)
		}
		out, _, err := sections(ctx)
		if err != nil {
			return nil, err
		}
		return &serve.Answer{Data: out, Meta: m}, nil
	})
}
