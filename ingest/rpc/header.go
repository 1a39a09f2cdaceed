package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/event"
)

// Header is the part of a block header that ingest needs.
type Header struct {
	Number uint64
	Hash   common.Hash
	Parent common.Hash
	Time   uint64 // Unix seconds
	Bloom  types.Bloom
	// NoBloom: the node returned the header without a bloom. Bloom is then empty and has no meaning.
	NoBloom bool
	Sealed  bool // its fields hash to Hash; otherwise Bloom rests on the node's word
}

// Record returns the block as a record of the log.
func (h *Header) Record() *event.Block {
	return &event.Block{Number: h.Number, Hash: h.Hash[:], ParentHash: h.Parent[:], Time: h.Time}
}

// HeaderOf is the inverse of Record, except for the bloom, which the log does not keep.
func HeaderOf(b *event.Block) *Header {
	return &Header{Number: b.GetNumber(), Hash: common.Hash(b.GetHash()), Parent: common.Hash(b.GetParentHash()),
		Time: b.GetTime()}
}

// maxHeader is the maximum size of the response with one header, which contains the hashes of 120,000 transactions.
// Many headers are requested at once, so their responses must fit into memory together.
const maxHeader = 8 << 20

// read makes a call for the block that its first parameter names: a number, "latest", "finalized" or a hash.
func (n *Node) read(ctx context.Context, c call) (*Header, error) {
	c.maxBytes = maxHeader
	return asked(ctx, n, c, func(result []byte) (*Header, error) { return n.headerAt(result, c.params[0]) })
}

func (n *Node) latest(ctx context.Context) (*Header, error) {
	return n.read(ctx, call{method: "eth_getBlockByNumber", params: []any{"latest", false}, vital: true})
}

// Latest returns the newest block, and lets the pool compare it with other endpoints to find those that lag. A head far
// above theirs is an error unless the node proves that it has such blocks.
func (n *Node) Latest(ctx context.Context) (*Header, error) {
	h, err := n.latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.pool.sawHead(ctx, n, h); err != nil {
		return nil, err
	}
	return h, nil
}

// ByNumber returns the block at a height in the node's current chain.
func (n *Node) ByNumber(ctx context.Context, number uint64) (*Header, error) {
	return n.read(ctx, call{method: "eth_getBlockByNumber", params: []any{hexutil.Uint64(number), false}})
}

// ByHash returns the block with a hash and a number, which need not be in the node's current chain. With another number
// the node does not have this block: only the fields of a sealed header prove its number.
func (n *Node) ByHash(ctx context.Context, hash common.Hash, number uint64) (*Header, error) {
	h, err := n.read(ctx, call{method: "eth_getBlockByHash", params: []any{hash, false}})
	if err == nil && h.Number != number {
		return nil, fmt.Errorf("%s returned block %d when asked for block %d by its hash %s: %w", n.Name, h.Number, number,
			hash, ErrNoBlock)
	}
	return h, err
}

// headerAt decodes the header of the requested block. It returns ErrNoBlock for null.
func (n *Node) headerAt(result []byte, which any) (*Header, error) {
	h, err := decodeHeader(result)
	if err == nil && h == nil {
		err = ErrNoBlock
	}
	if err == nil {
		var plain bool
		h.Sealed, plain = chainproof.Seals(result, h.Hash)
		err = n.pool.checkSeal(h, plain)
	}
	if err != nil {
		return nil, fmt.Errorf("block %v: %w", which, err)
	}
	switch which := which.(type) {
	case hexutil.Uint64:
		if h.Number != uint64(which) {
			return nil, fmt.Errorf("%w: it is block %d when asked for block %d", errWrongCall, h.Number, uint64(which))
		}
	case common.Hash:
		if h.Hash != which {
			return nil, fmt.Errorf("%w: it is block %s when asked for block %s", errWrongCall, h.Hash, which)
		}
	}
	return h, nil
}

// Headers reads the headers of blocks from to to, which must form a chain.
func (n *Node) Headers(ctx context.Context, from, to uint64) ([]*Header, error) {
	which := make([]any, to-from+1)
	for i := range which {
		which[i] = hexutil.Uint64(from + uint64(i))
	}
	chain, err := n.headers(ctx, "eth_getBlockByNumber", which)
	if err != nil {
		return nil, err
	}
	for i, h := range chain[1:] {
		if below := chain[i]; h.Parent != below.Hash {
			return nil, fmt.Errorf("%s returned blocks %d to %d that do not form a chain: block %d has the parent %s, but "+
				"block %d is %s",
				n.Name, from, to, h.Number, h.Parent, below.Number, below.Hash)
		}
	}
	return chain, nil
}

// headers reads the headers of blocks by their numbers or hashes, in this order.
func (n *Node) headers(ctx context.Context, method string, which []any) ([]*Header, error) {
	headers, params := make([]*Header, len(which)), make([][]any, len(which))
	for i := range which {
		params[i] = []any{which[i], false}
	}
	err := n.callInBatches(ctx, method, params, func(i int, result []byte) (err error) {
		headers[i], err = n.headerAt(result, which[i])
		return err
	})
	return headers, err
}

// maxDescent is how many blocks below the end descendsFrom follows a chain.
const maxDescent = 64

// descendsFrom reports whether the chain that ends with end goes through h, a block at most maxDescent below end, by
// the parent hashes: of several backends behind a URL, the one that returned h may have it at its height although it is
// no longer in the chain of end.
func (n *Node) descendsFrom(ctx context.Context, end, h *Header) (bool, error) {
	if end.Number-h.Number > maxDescent {
		return false, nil
	}
	for end.Number > h.Number {
		below, err := n.ByHash(ctx, end.Parent, end.Number-1)
		if errors.Is(err, ErrNoBlock) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		end = below
	}
	return end.Hash == h.Hash, nil
}

// A header is sealed if its fields hash to its hash by Ethereum's rule: then the block's hash covers its bloom, which
// otherwise rests on the node's word. A chain that hashes its headers in another way has no sealed headers. A plain
// header (chainproof.Seals) that is not sealed belongs to such a chain, or was changed, or lacks a field of a later
// fork.

// Accepted notes the header of a block that was appended to the log, by which later headers of all endpoints are
// judged: if its fields hash to its hash, theirs must, too. Do not call it on a chain whose headers prove nothing.
func (p *Pool) Accepted(h *Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Sealed && h.Number > 0 && (p.sealedFrom == 0 || h.Number < p.sealedFrom) {
		p.sealedFrom = h.Number
	}
}

// checkSeal returns an error for a plain header that is not sealed although the accepted header of the same or a lower
// block is: one of its fields was changed.
func (p *Pool) checkSeal(h *Header, plain bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.Sealed && plain && p.sealedFrom > 0 && h.Number >= p.sealedFrom {
		return fmt.Errorf("the fields of the header of block %d do not hash to its hash %s, as those of block %d do: a "+
			"field was changed or left out", h.Number, h.Hash, p.sealedFrom)
	}
	return nil
}
