package events

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/httpapi"
)

type blockJSON struct {
	BlockNumber string `json:"blockNumber"`
	Timestamp   string `json:"timestamp"`
}

// BlockOf returns the block whose state is the one at a time, or the block of the answer if no time is given.
func BlockOf(r *httpapi.Request) (*httpapi.Answer, error) {
	time, given := r.Params.Moment("time")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*httpapi.Answer, error) {
		if !given {
			now, err := p.Now(ctx)
			if err != nil {
				return nil, err
			}
			return &httpapi.Answer{Data: blockJSON{httpapi.Decimal(p.Block), httpapi.Time(now)}}, nil
		}
		block, at, ok, err := p.BlockAt(ctx, time)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, httpapi.NotFound("This time is before the first indexed block.")
		}
		return &httpapi.Answer{Data: blockJSON{httpapi.Decimal(block), httpapi.Time(at)}}, nil
	})
}
