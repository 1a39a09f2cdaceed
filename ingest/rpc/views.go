package rpc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// viewsAtOnce is how many calls are sent in one batch: nodes bound the time of a batch, and each call runs the EVM.
const viewsAtOnce = 16

// View is a call of a contract at the end of a block.
type View struct {
	To    common.Address
	Input []byte
	At    *Header
}

// Seen is the result of a View.
type Seen struct {
	// Output is what the contract returned; nil if it reverted.
	Output []byte
	// NoState means that the state of the block is missing, so that it is unknown what the contract would return.
	NoState bool
}

func (s Seen) same(other Seen) bool {
	return !s.NoState && !other.NoState && (s.Output == nil) == (other.Output == nil) && slices.Equal(s.Output, other.Output)
}

// Views calls contracts at n. It calls other endpoints, too, if n lacks the state of the blocks, or if need, the number
// of endpoints that must return the same result, is more than one. views are in block order, the newest first.
//
// A node keeps the state of new blocks longest. So if it lacks the state of one block, it is not called for older ones.
func (p *Pool) Views(ctx context.Context, n *Node, need int, views []View) ([]Seen, error) {
	settled, open := make([]Seen, len(views)), len(views)
	given := make([][]Seen, len(views)) // results so far, without NoState
	done := make([]bool, len(views))
	var faults []error
	for _, from := range append([]*Node{n}, p.Others(n)...) {
		var seen []Seen
		err := error(nil)
		if from != n {
			err = p.Identified(ctx, from)
		}
		if err == nil {
			seen, err = from.views(ctx, views)
		}
		switch {
		case err != nil && (from == n || ctx.Err() != nil):
			return nil, err
		case err != nil:
			faults = append(faults, err)
			continue
		}
		for i, s := range seen {
			if done[i] || s.NoState {
				continue
			}
			given[i] = append(given[i], s)
			same := 0
			for _, g := range given[i] {
				if g.same(s) {
					same++
				}
			}
			if same >= need {
				settled[i], done[i] = s, true
				open--
			}
		}
		if open == 0 {
			return settled, nil
		}
	}
	for i := range views {
		switch {
		case done[i]:
		case len(given[i]) > 1:
			return nil, fmt.Errorf("%w about what %s returns at block %d (%s)", ErrDisagree, views[i].To, views[i].At.Number, views[i].At.Hash)
		case len(faults) > 0:
			return nil, fmt.Errorf("call %s at block %d: %w", views[i].To, views[i].At.Number, errors.Join(faults...))
		default: // too few endpoints have the state
			settled[i] = Seen{NoState: true}
		}
	}
	return settled, nil
}

// views calls contracts, the newest block first.
func (n *Node) views(ctx context.Context, views []View) ([]Seen, error) {
	seen := make([]Seen, 0, len(views))
	for len(seen) < len(views) {
		some := views[len(seen):]
		some = some[:min(len(some), viewsAtOnce, n.health.atOnce())]
		answers, err := n.someViews(ctx, some)
		if err != nil {
			return nil, err
		}
		if seen = append(seen, answers...); seen[len(seen)-1].NoState {
			for len(seen) < len(views) {
				seen = append(seen, Seen{NoState: true})
			}
		}
	}
	return seen, nil
}

// someViews calls contracts in one batch and, if the node responds with an error, one after the other: the error of a
// batch does not say which of its calls it is about.
func (n *Node) someViews(ctx context.Context, views []View) (seen []Seen, err error) {
	params := make([][]any, len(views))
	for i, v := range views {
		params[i] = n.viewParams(v)
	}
	results, err := n.exchangeBatch(ctx, "eth_call", params)
	switch {
	case err == nil:
		for i := range results {
			s, err := n.seen(ctx, results[i])
			if err != nil {
				return nil, err
			}
			seen = append(seen, s)
		}
	case refused(err):
		for i := range views {
			s, err := n.oneView(ctx, views[i])
			if err != nil {
				return nil, err
			}
			if seen = append(seen, s); s.NoState {
				break
			}
		}
		for len(seen) < len(views) {
			seen = append(seen, Seen{NoState: true})
		}
	default:
		return nil, err
	}
	return seen, n.stillThere(ctx, views, seen)
}

// oneView calls one contract. If a node does not accept a block by its hash, this and all later calls use the number.
func (n *Node) oneView(ctx context.Context, v View) (Seen, error) {
	raw, err := n.exchange(ctx, "eth_call", n.viewParams(v)...)
	if err != nil && !n.numbers.Load() && takesNoHash(err) {
		n.numbers.Store(true)
		raw, err = n.exchange(ctx, "eth_call", n.viewParams(v)...)
	}
	switch {
	case err == nil:
		return n.seen(ctx, raw)
	case Reverted(err):
		return Seen{}, nil
	case lacksState(err):
		return Seen{NoState: true}, nil
	}
	return Seen{}, err
}

func (n *Node) viewParams(v View) []any {
	call := map[string]any{"to": v.To, "data": hexutil.Bytes(v.Input)}
	if n.numbers.Load() {
		return []any{call, hexutil.Uint64(v.At.Number)}
	}
	return []any{call, map[string]any{"blockHash": v.At.Hash, "requireCanonical": true}} // EIP-1898
}

func (n *Node) seen(ctx context.Context, result []byte) (Seen, error) {
	output, err := decodeBytes(result)
	if err != nil {
		return Seen{}, n.blame(ctx, "eth_call", n.fails(fmt.Errorf("the result cannot be read: %w", err)))
	}
	return Seen{Output: append([]byte{}, output...)}, nil
}

// stillThere returns an error if calls by block number were answered for another block than the intended one.
func (n *Node) stillThere(ctx context.Context, views []View, seen []Seen) error {
	if !n.numbers.Load() {
		return nil
	}
	var last *Header
	for i, v := range views {
		if seen[i].NoState || last != nil && last.Number == v.At.Number {
			continue
		}
		last = v.At
		h, err := n.ByNumber(ctx, v.At.Number)
		if err != nil {
			return err
		}
		if h.Hash != v.At.Hash {
			return fmt.Errorf("block %d at %s is %s and not %s: it was reorganised while contracts were called",
				v.At.Number, n.Name, h.Hash, v.At.Hash)
		}
	}
	return nil
}

// takesNoHash reports whether a node rejected a call because of the form of its parameters.
func takesNoHash(err error) bool {
	const invalidParams = -32602
	var answer ethrpc.Error
	return errors.As(err, &answer) && answer.ErrorCode() == invalidParams && !lacksState(err)
}

// ofState matches the messages of a node that has a block but not the state at its end: go-ethereum ("missing trie node
// ... state 0x... is not available", "historical state 0x... is not available"), reth ("state at block #8 is pruned"),
// Nethermind ("No state available for block 8"), Besu ("World state unavailable"), OpenEthereum ("your node is running
// with state pruning"), and providers that sell old state ("archive").
var ofState = regexp.MustCompile(`missing trie node|historical state|\bstate\b[^.]{0,100}\b(?:not available|unavailable|pruned|missing)\b` +
	`|no state (?:is )?available|state pruning|\barchive\b`)

// lacksState reports whether a node has the block, but no longer the state at its end.
func lacksState(err error) bool {
	var answer ethrpc.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.ErrorCode() == prunedHistory || ofState.MatchString(strings.ToLower(wordsOf(answer)))
}

// wordsOf returns the message of an error, with its data.
func wordsOf(answer ethrpc.Error) string {
	if more := (*rpcError)(nil); errors.As(answer, &more) {
		return beginning(more.Message) + " " + beginning(more.Data)
	}
	return beginning(answer.Error())
}

// Reverted reports whether the EVM failed a call, rather than the node.
func Reverted(err error) bool {
	var answer ethrpc.Error
	if !errors.As(err, &answer) {
		return false
	}
	const executionError = 3
	text := strings.ToLower(wordsOf(answer))
	// The data may be what Solidity returns when it reverts: the selectors of Error(string) and Panic(uint256).
	if strings.Contains(text, "0x08c379a0") || strings.Contains(text, "0x4e487b71") {
		return true
	}
	return answer.ErrorCode() == executionError || strings.Contains(text, "revert") || strings.Contains(text, "invalid opcode") || strings.Contains(text, "out of gas")
}

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
