package rpc

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Sampling says which contracts to call at the ends of blocks.
type Sampling struct {
	// Need is how many endpoints must return the same result.
	Need int
	// Calls returns the calls that are due at the blocks from first to last, in block order. It must be safe for
	// concurrent use.
	Calls func(first, last uint64) []SampleCall
}

// SampleCall is a call of a contract of a vault at the end of a block.
type SampleCall struct {
	Vault  common.Address
	Number uint64 // number of the block
	To     common.Address
	Input  []byte
}

// Sample is the result of a SampleCall.
type Sample struct {
	SampleCall
	At *Header
	// Output is what the contract returned; nil if it reverted.
	Output []byte
}

// Sampled sets the sampling of a reader and returns the reader.
func (r *Reader) Sampled(s *Sampling) *Reader {
	r.sampling = s
	return r
}

// sample makes the calls that are due in a part.
func (r *Reader) sample(ctx context.Context, n *Node, p *Part) error {
	if r.sampling == nil {
		return nil
	}
	calls := r.sampling.Calls(p.From, p.To)
	// The newest block comes first, in a batch of its own: if no endpoint has its state, the older blocks are skipped.
	for some := 1; len(calls) > 0; some = viewsAtOnce {
		next := calls[max(0, len(calls)-some):]
		calls = calls[:len(calls)-len(next)]
		headers, err := n.headersAt(ctx, p, next)
		if err != nil {
			return err
		}
		samples, noState, err := r.pool.Sample(ctx, n, r.sampling.Need, next, headers)
		if err != nil {
			return err
		}
		p.Samples = slices.Concat(samples, p.Samples)
		p.bytes += len(samples) * typicalLog
		if p.NoState = noState; noState > 0 {
			break
		}
	}
	return nil
}

// Sample makes calls at blocks whose headers are given by number, in the order of the calls. It returns the results in
// the same order, and the last block whose state no endpoint has; 0 for none.
func (p *Pool) Sample(ctx context.Context, n *Node, need int, calls []SampleCall, headers map[uint64]*Header) (samples []Sample, noState uint64, err error) {
	views := make([]View, len(calls))
	for i, c := range calls {
		views[len(calls)-1-i] = View{c.To, c.Input, headers[c.Number]}
	}
	seen, err := p.Views(ctx, n, need, views)
	if err != nil {
		return nil, 0, err
	}
	for i, c := range calls {
		s := seen[len(calls)-1-i]
		if s.NoState {
			noState = max(noState, c.Number)
			continue
		}
		samples = append(samples, Sample{c, headers[c.Number], s.Output})
	}
	return samples, noState, nil
}

// headersAt returns the headers of the blocks of calls, from the part or else from the node. A block that has logs in
// the part must have the same hash as they do.
func (n *Node) headersAt(ctx context.Context, p *Part, calls []SampleCall) (map[uint64]*Header, error) {
	headers := make(map[uint64]*Header, len(calls))
	var params [][]any
	for _, c := range calls {
		if _, asked := headers[c.Number]; asked {
			continue
		}
		headers[c.Number] = nil
		i := slices.IndexFunc(p.Blocks, func(h *Header) bool { return h.Number == c.Number })
		if i >= 0 {
			headers[c.Number] = p.Blocks[i]
			continue
		}
		params = append(params, []any{hexutil.Uint64(c.Number), false})
	}
	err := n.inBatches(ctx, "eth_getBlockByNumber", params, func(i int, result []byte) error {
		h, err := n.headerAt(result, params[i][0])
		if err != nil {
			return err
		}
		if number := uint64(params[i][0].(hexutil.Uint64)); h.Number != number {
			return fmt.Errorf("%s returned block %d when asked for block %d", n.Name, h.Number, number)
		}
		headers[h.Number] = h
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, l := range p.Logs {
		if h := headers[l.BlockNumber]; h != nil && h.Hash != common.Hash(l.BlockHash) {
			return nil, fmt.Errorf("%s returned block %d as %s, and a log of it with the block %x", n.Name, h.Number, h.Hash, l.BlockHash)
		}
	}
	return headers, nil
}
