package ingest

import (
	"context"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// pipeline reads ranges of final blocks ahead of their commit. Only the session
// touches it; its jobs run by themselves and touch nothing but their own.
type pipeline struct {
	reader *reader
	flight int // jobs at once
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup

	at   uint64 // the block that comes out next
	next uint64 // the first block that no job has
	jobs []*job // in the order of their blocks
}

func newPipeline(ctx context.Context, r *reader, flight int, from uint64) *pipeline {
	p := &pipeline{reader: r, flight: flight, at: from, next: from}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// serves says that the pipeline reads these vaults, and nothing beyond to.
func (p *pipeline) serves(vaults []common.Address, from, to uint64) bool {
	return p != nil && p.at == from && p.next <= to+1 && slices.Equal(p.reader.addresses, vaults)
}

// close gives up what is in flight.
func (p *pipeline) close() {
	if p == nil {
		return
	}
	p.stop()
	p.wg.Wait()
}

// fill lets every place in flight have a job, as far as there are blocks up to
// to, and the jobs that have stopped go on, with this node.
func (p *pipeline) fill(n *node, to, recordFrom uint64) {
	for _, j := range p.jobs {
		if j.running == nil && !j.done() {
			p.start(n, j)
		}
	}
	for len(p.jobs) < p.flight && p.next <= to {
		width := p.reader.limits(n).next(p.reader.most)
		j := &job{at: p.next, to: min(to, p.next+width-1), recordFrom: recordFrom}
		p.next = j.to + 1
		p.jobs = append(p.jobs, j)
		p.start(n, j)
	}
}

func (p *pipeline) start(n *node, j *job) {
	running := make(chan struct{})
	j.running, j.err = running, nil
	p.wg.Go(func() {
		defer close(running)
		j.err = p.reader.run(p.ctx, n, j)
	})
}

// take waits for the first job and gives what the jobs have read in a row, up
// to about most bytes. With an error come the parts before it. A job that is
// not done goes on with the next fill.
func (p *pipeline) take(ctx context.Context, most int) (parts []*part, err error) {
	for held := 0; len(p.jobs) > 0 && held < most; {
		j := p.jobs[0]
		if len(parts) == 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-j.running:
			}
		}
		select {
		case <-j.running:
		default:
			return parts, nil
		}
		j.running = nil
		parts, held, err = append(parts, j.parts...), held+j.held, j.err
		j.parts, j.held, j.err, p.at = nil, 0, nil, j.at
		if !j.done() {
			return parts, err
		}
		p.jobs = p.jobs[1:]
	}
	return parts, nil
}
