package rpc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Sampling returns the calls of contracts that are due at the ends of the blocks from first to last, in block order. It
// must be safe for concurrent use. nil samples nothing.
type Sampling func(first, last uint64) []SampleCall

// SampleCall is a call of a contract of a vault at the end of a block.
type SampleCall struct {
	Vault  common.Address
	Number uint64 // number of the block
	To     common.Address
	Input  []byte
}

// Sample is a SampleCall and its result.
type Sample struct {
	SampleCall
	At *Header
	// Output is what the contract returned; nil if it reverted.
	Output []byte
	// noState means that the state of the block is missing, so that it is unknown what the contract would return.
	noState bool
}

// Sample makes calls at blocks whose headers are given by number, and returns the results in the order of the calls,
// and the last block whose state no endpoint has; 0 for none. It calls other endpoints than n, too, if n lacks the
// state, or if more than one endpoint must return the same result.
func (p *Pool) Sample(
	ctx context.Context, n *Node, calls []SampleCall, headers map[uint64]*Header,
) (samples []Sample, noState uint64, err error) {
	views := make([]Sample, len(calls))
	for i, c := range calls {
		views[len(calls)-1-i] = Sample{SampleCall: c, At: headers[c.Number]}
	}
	if err := p.readSamples(ctx, n, views); err != nil {
		return nil, 0, err
	}
	for _, s := range slices.Backward(views) {
		if s.noState {
			noState = max(noState, s.Number)
		} else {
			samples = append(samples, s)
		}
	}
	return samples, noState, nil
}

// readSamples sets the results of calls, which are in block order, the newest first.
func (p *Pool) readSamples(ctx context.Context, n *Node, views []Sample) error {
	open := len(views)
	votes := make([]map[string]int, len(views)) // endpoints by the result that they returned
	done := make([]bool, len(views))
	var faults []error
	for from, err := range p.StartingWith(ctx, n) {
		seen := slices.Clone(views)
		if err == nil {
			err = from.views(ctx, seen)
		}
		switch {
		case err != nil && (from == n || ctx.Err() != nil):
			return err
		case err != nil:
			faults = append(faults, err)
			continue
		}
		for i, s := range seen {
			if done[i] || s.noState {
				continue
			}
			if votes[i] == nil {
				votes[i] = map[string]int{}
			}
			result := fmt.Sprint(s.Output == nil, s.Output) // nil is a revert
			if votes[i][result]++; votes[i][result] >= p.Agreement {
				views[i], done[i] = s, true
				open--
			}
		}
		if open == 0 {
			return nil
		}
	}
	for i, v := range views {
		switch {
		case done[i]:
		case len(votes[i]) > 1:
			return fmt.Errorf("%w about what %s returns at block %d (%s)", ErrDisagree, v.To, v.At.Number, v.At.Hash)
		case len(faults) > 0:
			return fmt.Errorf("call %s at block %d: %w", v.To, v.At.Number, errors.Join(faults...))
		default: // too few endpoints have the state
			views[i].noState = true
		}
	}
	return nil
}

// viewsPatience is longer than the pause of a limited endpoint grows while eight calls are limited at the same time.
const viewsPatience = 10 * time.Second

// views calls contracts at one endpoint, the newest block first, a few calls at the same time. A node keeps the state
// of new blocks longest: if it lacks that of one block, it is not called for older ones.
func (n *Node) views(ctx context.Context, views []Sample) error {
	var mu sync.Mutex
	lacks := len(views) // the first call at a block whose state the node lacks
	err := n.callAll(ctx, len(views), viewsPatience, nil, func(i int) error {
		mu.Lock()
		older := i > lacks
		mu.Unlock()
		if older {
			return nil
		}
		err := n.oneView(ctx, &views[i])
		if views[i].noState {
			mu.Lock()
			lacks = min(lacks, i)
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := lacks; i < len(views); i++ {
		views[i].noState = true
	}
	return n.checkCanonical(ctx, views)
}

func (n *Node) oneView(ctx context.Context, v *Sample) error {
	output, err := n.atEndOf(ctx, v.At, "eth_call", map[string]any{"to": v.To, "data": hexutil.Bytes(v.Input)})
	switch {
	case err == nil, reverted(err):
		v.Output = output // nil if the contract reverted
		return nil
	case lacksState(err), lacksStateOrBlock(err) && (n.isFarAbove(v.At.Number) || namesLater(err, v.At.Number)):
		v.noState = true
		return nil
	}
	return err
}

// atEndOf makes a call about the state at the end of a block, whose result is a byte string. If a node does not accept
// a block by its hash, this and all later calls use the number, and checkCanonical must follow.
func (n *Node) atEndOf(ctx context.Context, at *Header, method string, what any) ([]byte, error) {
	for {
		byHash, block := !n.numbers.Load(), any(hexutil.Uint64(at.Number))
		if byHash {
			block = map[string]any{"blockHash": at.Hash, "requireCanonical": true} // EIP-1898
		}
		result, err := asked(ctx, n, call{method: method, params: []any{what, block}}, decodeBytes)
		if err == nil || !byHash || !rejectsHash(err) {
			return result, err
		}
		n.numbers.Store(true)
	}
}

// checkCanonical returns an error if calls by block number were answered for another block than the intended one.
func (n *Node) checkCanonical(ctx context.Context, views []Sample) error {
	if !n.numbers.Load() {
		return nil
	}
	var last *Header
	for _, v := range views {
		if v.noState || last != nil && last.Number == v.At.Number {
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

// rejectsHash reports whether a node rejected a call because of the form of its parameters.
func rejectsHash(err error) bool {
	return hasCode(err, invalidParams) && !reverted(err) && !lacksState(err) && !lacksStateOrBlock(err)
}

// missingStateText matches the messages of a node that has a block but not the state at its end: go-ethereum ("missing
// trie node ... state 0x... is not available", "historical state 0x... is not available"), reth ("state at block #8 is
// pruned"), Erigon ("old data not available due to pruning"), Nethermind ("No state available for block 8"), Besu
// ("World state unavailable"), OpenEthereum ("your node is running with state pruning"), Nitro ("state recreation l2
// gas depth limit exceeded"), op-geth ("no historical RPC is available for this historical (pre-bedrock) execution
// request"), zkSync ("Block with such an ID is pruned"), Frontier ("State already discarded for ..."), Cosmos chains
// ("height 8 is not available, lowest height is 9"), and providers that sell old state ("archive", "archival"). It must
// not match the messages of a node that does not have the block yet: that sample would be lost.
var missingStateText = regexp.MustCompile(`missing trie node|historical (?:state|rpc)|\bpruning\b|\barchiv(?:e|al)\b` +
	`|\bstate\b[^.]{0,100}\b(?:not available|unavailable|pruned|missing|discarded)\b` +
	`|no state (?:is )?available|state recreation` +
	`|(?:block|height)\b[^.]{0,40}\b(?:is|been) pruned\b|lowest height`)

// missingStateOrBlockText matches the messages of a node that does not have the state of a block, or does not have it
// yet: reth ("no state found for block 0x..."), Cosmos chains ("failed to load state at height 8; version does not
// exist"), and Rootstock ("State not found for block").
var missingStateOrBlockText = regexp.MustCompile(`no state found|\bstate\b[^.]{0,100}\bnot found\b|load state at height`)

func lacksStateOrBlock(err error) bool { return matches(err, missingStateOrBlockText) }

// isFarAbove reports whether the head of a node is so far above a block that it must have had its state: nodes that
// drop old states keep those of at least 128 blocks.
func (n *Node) isFarAbove(block uint64) bool {
	head := n.health.snapshot().head
	return head != nil && head.Number >= block+128
}

// latestHeightText matches the newest state that a Cosmos chain names in the error: some of them keep fewer than 128.
var latestHeightText = regexp.MustCompile(`\(latest height: ([0-9]+)\)`)

// namesLater reports whether an error names a newer block as the latest one.
func namesLater(err error, block uint64) bool {
	answer, is := errors.AsType[*rpcError](err)
	if !is {
		return false
	}
	m := latestHeightText.FindStringSubmatch(answer.text())
	return m != nil && figureOf(m[1]) > block
}

// lacksState reports whether a node has the block, but no longer the state at its end.
func lacksState(err error) bool { return hasCode(err, prunedHistory) || matches(err, missingStateText) }

// evmFailureText matches the messages about a call that the EVM failed: "execution reverted: reason", "VM Exception
// while processing transaction: revert reason" (Hardhat, Ganache, RSK), "Reverted 0x08c379a0..." in the data of a "VM
// execution error." (OpenEthereum, Nethermind), "evm error: OutOfGas" (Frontier), and the faults that go-ethereum
// names. 0x08c379a0 and 0x4e487b71 are the selectors of Error(string) and Panic(uint256), with which Solidity reverts.
var evmFailureText = regexp.MustCompile(`revert|0x08c379a0|0x4e487b71|\bvm exception|\bvm execution error|\bevm error` +
	`|invalid opcode|bad instruction|(?:invalid|bad) jump|stack (?:underflow|overflow|limit)|out of ?gas`)

// reverted reports whether the EVM failed a call, rather than the node. Check it before the text of an error means
// anything else: a contract chooses the reason of its revert, which may be the words in which a node reports a limit.
func reverted(err error) bool { return hasCode(err, executionError) || matches(err, evmFailureText) }

func (r *Reader) sample(ctx context.Context, n *Node, p *Part) error {
	if r.sampling == nil {
		return nil
	}
	calls := r.sampling(p.From, p.To)
	// The newest block comes first, by itself: if no endpoint has its state, the older blocks are skipped.
	for some := 1; len(calls) > 0; some = maxConcurrentCalls {
		next := calls[max(0, len(calls)-some):]
		calls = calls[:len(calls)-len(next)]
		headers, err := n.headersAt(ctx, p, next)
		if err != nil {
			return err
		}
		samples, noState, err := r.pool.Sample(ctx, n, next, headers)
		if err != nil {
			return err
		}
		p.Samples = slices.Concat(samples, p.Samples)
		p.bytes += len(samples) * typicalLogBytes
		if p.NoState = noState; noState > 0 {
			break
		}
	}
	return nil
}

// headersAt returns the headers of the blocks of calls, from the part or else from the node.
func (n *Node) headersAt(ctx context.Context, p *Part, calls []SampleCall) (map[uint64]*Header, error) {
	headers := make(map[uint64]*Header, len(calls))
	var missing []any
	for _, c := range calls {
		if _, asked := headers[c.Number]; asked {
			continue
		}
		headers[c.Number] = nil
		if i := slices.IndexFunc(p.Blocks, func(h *Header) bool { return h.Number == c.Number }); i >= 0 {
			headers[c.Number] = p.Blocks[i]
		} else {
			missing = append(missing, hexutil.Uint64(c.Number))
		}
	}
	read, err := n.headers(ctx, "eth_getBlockByNumber", missing)
	if err != nil {
		return nil, err
	}
	for _, h := range read {
		headers[h.Number] = h
	}
	for _, l := range p.Logs {
		if h := headers[l.BlockNumber]; h != nil && h.Hash != common.Hash(l.BlockHash) {
			return nil, fmt.Errorf("%s returned block %d as %s, and a log of it with the block %x", n.Name, h.Number, h.Hash,
				l.BlockHash)
		}
	}
	return headers, nil
}
