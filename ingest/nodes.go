package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/common"
)

// nodes is the list of endpoints. One of them is in use until it fails; then
// it is the next one's turn.
type nodes struct {
	endpoints []Endpoint
	chainID   uint64
	metrics   *metrics
	log       *slog.Logger

	dialled []*node
	at      int
	genesis *common.Hash // of the first endpoint that answered
}

func newNodes(c Config, m *metrics, log *slog.Logger) *nodes {
	return &nodes{endpoints: c.RPC, chainID: c.ID, metrics: m, log: log, dialled: make([]*node, len(c.RPC))}
}

func (p *nodes) close() {
	for _, n := range p.dialled {
		if n != nil {
			n.close()
		}
	}
}

// first finds an endpoint that answers, trying each once.
func (p *nodes) first(ctx context.Context) (*node, error) {
	var faults []error
	for range p.endpoints {
		n, err := p.current(ctx)
		var wrong *RefusedError
		if err == nil || ctx.Err() != nil || errors.As(err, &wrong) {
			return n, err
		}
		faults = append(faults, err)
		p.next()
	}
	return nil, fmt.Errorf("no endpoint of chain.rpc answers; is the node up and the URL right? %w", errors.Join(faults...))
}

// current is the endpoint in use. It was seen to serve the right chain.
func (p *nodes) current(ctx context.Context) (*node, error) { return p.get(ctx, p.at) }

// other is the endpoint after n, or an error when there is none.
func (p *nodes) other(ctx context.Context, n *node) (*node, error) {
	if len(p.endpoints) == 1 {
		return nil, errors.New("there is no other endpoint")
	}
	for i, have := range p.dialled {
		if have == n {
			return p.get(ctx, (i+1)%len(p.endpoints))
		}
	}
	return nil, errors.New("there is no such endpoint")
}

// next gives the turn to the next endpoint.
func (p *nodes) next() { p.at = (p.at + 1) % len(p.endpoints) }

func (p *nodes) get(ctx context.Context, i int) (*node, error) {
	if p.dialled[i] == nil {
		n, err := dialNode(ctx, p.endpoints[i], p.metrics)
		if err != nil {
			return nil, err
		}
		p.dialled[i] = n
	}
	n := p.dialled[i]
	if n.identified {
		return n, nil
	}
	return n, p.identify(ctx, i, n)
}

// identify checks that an endpoint serves the configured chain, and the same
// one as the others.
func (p *nodes) identify(ctx context.Context, i int, n *node) error {
	id, err := n.chainID(ctx)
	if err != nil {
		return err
	}
	if id != p.chainID {
		return refuse("chain.rpc[%d] (%s) serves chain %d, but chain.id is %d: correct one of them", i, n.name, id, p.chainID)
	}
	zero, err := n.byNumber(ctx, 0)
	if err != nil {
		return err
	}
	if p.genesis != nil && zero.Hash != *p.genesis {
		return refuse("chain.rpc[%d] (%s) serves a chain with genesis %s, but the other endpoints serve one with genesis %s: remove the wrong one", i, n.name, zero.Hash, p.genesis)
	}
	p.genesis, n.identified = &zero.Hash, true
	return nil
}
