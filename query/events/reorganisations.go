package events

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

//go:embed reorganisations.sql
var sqlReorganisations string

// mostSections is how many sections of blocks an answer has at most.
const mostSections = 1000

type reorganisationsJSON struct {
	FromBlock string `json:"fromBlock"`
	ToBlock   string `json:"toBlock"`
	Count     int64  `json:"count"`
	Logs      int64  `json:"logs"`
	Seq       string `json:"seq"`
}

// reorganisationsMeta says how many there are, also of the sections that are left out.
type reorganisationsMeta struct {
	Total int64 `json:"total"`
}

// Reorganisations are those that took blocks back, up to a block, by where each begins and
// newest first. Those that begin in one section of `width` blocks are told together, so
// that a chain of any length fits on a slider.
func Reorganisations(r *httpapi.Request) (*httpapi.Answer, error) {
	width := r.Params.Integer("width", 1, 1, math.MaxInt64, fmt.Sprintf("must be a number of blocks, 1 to %d", math.MaxInt64))
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		type row struct {
			From  uint64 `ch:"from"`
			To    uint64 `ch:"to"`
			Count uint64 `ch:"count"`
			Logs  uint64 `ch:"logs"`
			Seq   uint64 `ch:"seq"`
			Total uint64 `ch:"total"`
		}
		rows, err := pin.Ask[row](ctx, p, sqlReorganisations, pin.Args{"kinds": every(), "width": width, "most": uint64(mostSections)})
		if err != nil {
			return nil, err
		}
		out, m := make([]reorganisationsJSON, len(rows)), reorganisationsMeta{}
		for i, row := range rows {
			out[i] = reorganisationsJSON{httpapi.Decimal(row.From), httpapi.Decimal(row.To), int64(row.Count), int64(row.Logs), httpapi.Decimal(row.Seq)}
			m.Total = int64(row.Total)
		}
		return &httpapi.Answer{Data: out, Meta: m}, nil
	})
}
