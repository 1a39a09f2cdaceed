package events

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
)

type blockJSON struct {
	BlockNumber string `json:"blockNumber"`
	Timestamp   string `json:"timestamp"`
}

// BlockOf returns the block whose state is the one at a time, or the block of the answer if no time is given.
func BlockOf(r *serve.Request) (*serve.Answer, error) {
	time, given := r.Params.Moment("time")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		if !given {
			now, err := p.Now(ctx)
			if err != nil {
				return nil, err
			}
			return &serve.Answer{Data: blockJSON{serve.Decimal(p.Block), serve.Time(now)}}, nil
		}
		block, at, ok, err := p.BlockAt(ctx, time)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, serve.NotFound("This time is before the first indexed block.")
		}
		return &serve.Answer{Data: blockJSON{serve.Decimal(block), serve.Time(at)}}, nil
	})
}
