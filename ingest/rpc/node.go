package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/event"
)

// Node is one RPC endpoint.
type Node struct {
	Name    string // scheme and host only: the rest of the URL may contain a key
	host    string // without the port
	spare   bool   // takes no ranges of a backfill
	order   int    // of two endpoints that are equally usable, the one with the lower order is used
	url, ws string // ws announces new blocks; empty for none
	http    *transport
	health  *health
	limits  *limits
	seals   *seals // shared by the pool
	metrics *callMetrics
	spent   Bill
	numbers atomic.Bool // contracts are called by block number, because the node does not accept a hash
	// heads is called with every head. It returns an error for a head that is not trusted.
	heads func(context.Context, *Header) error

	dialling sync.Mutex
	socket   *ethrpc.Client // nil for HTTP, and before the first call
}

// newNode returns an endpoint with a valid configuration. It does not connect.
func newNode(e Endpoint, name string, c clock, m *callMetrics) *Node {
	n := &Node{Name: name, spare: e.Spare, url: e.URL, ws: e.WS, health: newHealth(e, c), limits: newLimits(), seals: new(seals), metrics: m, heads: func(context.Context, *Header) error { return nil }, spent: Bill{Prices: e.Prices}}
	if u, err := url.Parse(e.URL); err != nil || u.Scheme == "ws" || u.Scheme == "wss" {
		n.ws = cmp.Or(n.ws, n.url)
	} else {
		n.http = newTransport(u, n.answered)
	}
	if u, err := url.Parse(e.URL); err == nil {
		n.host = u.Hostname()
	}
	return n
}

// Prices returns the units per call at this endpoint, by method; nil for none.
func (n *Node) Prices() map[string]uint64 { return n.spent.Prices }

// answered counts the bytes of a response.
func (n *Node) answered(method string, bytes int) {
	n.spent.Received(method, bytes)
	n.metrics.answered(n.Name, method, bytes)
}

// overSocket returns the WebSocket client, which reconnects by itself.
func (n *Node) overSocket(ctx context.Context) (*ethrpc.Client, error) {
	n.dialling.Lock()
	defer n.dialling.Unlock()
	if n.socket == nil {
		client, err := ethrpc.DialOptions(ctx, n.url, ethrpc.WithWebsocketMessageSizeLimit(maxAnswer))
		if err != nil {
			return nil, err
		}
		n.socket = client
	}
	return n.socket, nil
}

func (n *Node) close() {
	n.dialling.Lock()
	defer n.dialling.Unlock()
	if n.socket != nil {
		n.socket.Close()
	}
	if n.http != nil {
		n.http.close()
	}
}

// CallContract calls a contract at the newest block, and returns its output.
func (n *Node) CallContract(ctx context.Context, to common.Address, input []byte) ([]byte, error) {
	return asked(ctx, n, decodeBytes, "eth_call", map[string]any{"to": to, "data": hexutil.Bytes(input)}, "latest")
}

// asked makes a call and decodes the result. A result that cannot be decoded counts as a failure of the node.
func asked[T any](ctx context.Context, n *Node, decode func([]byte) (T, error), method string, params ...any) (result T, err error) {
	raw, err := n.exchange(ctx, method, params...)
	if err != nil {
		return result, err
	}
	if result, err = decode(raw); err != nil {
		err = n.blame(ctx, method, n.fails(fmt.Errorf("the result cannot be read: %w", err)))
	}
	return result, err
}

// fails notes a failure that no call ended with, such as a response that cannot be decoded.
func (n *Node) fails(err error) error {
	n.health.set(func(h *health) { h.fail(h.now(), h.now(), err) })
	return err
}

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
	return &Header{Number: b.GetNumber(), Hash: common.Hash(b.GetHash()), Parent: common.Hash(b.GetParentHash()), Time: b.GetTime()}
}

// ErrNoBlock means that the node does not have the requested block.
var ErrNoBlock = errors.New("the node does not have this block")

// Lags reports whether the node's head is far below that of another endpoint, or is not verified.
func (n *Node) Lags() bool { return n.health.is(lagging) }

// block reads a header by number ("latest", "finalized" or hex) or by hash. It accepts the node's hash unchecked,
// because chains differ in what they hash.
func (n *Node) block(ctx context.Context, method string, which any) (*Header, error) {
	result, err := n.exchange(ctx, method, which, false)
	if err != nil {
		return nil, err
	}
	return n.headerAt(result, which)
}

// Latest returns the newest block, and lets the pool compare it with other endpoints to find those that lag. A head far
// above those of other endpoints is an error unless the node proves that it has such blocks.
func (n *Node) Latest(ctx context.Context) (*Header, error) {
	h, err := n.block(ctx, "eth_getBlockByNumber", "latest")
	if err != nil {
		return nil, err
	}
	if err := n.heads(ctx, h); err != nil {
		return nil, err
	}
	return h, nil
}

// ByNumber returns the block at a height in the node's current chain.
func (n *Node) ByNumber(ctx context.Context, number uint64) (*Header, error) {
	h, err := n.block(ctx, "eth_getBlockByNumber", hexutil.Uint64(number))
	if err == nil && h.Number != number {
		err = fmt.Errorf("%s returned block %d when asked for block %d", n.Name, h.Number, number)
	}
	return h, err
}

// ByHash returns a block that need not be in the node's current chain.
func (n *Node) ByHash(ctx context.Context, hash common.Hash) (*Header, error) {
	h, err := n.block(ctx, "eth_getBlockByHash", hash)
	if err == nil && h.Hash != hash {
		err = fmt.Errorf("%s returned block %s when asked for block %s", n.Name, h.Hash, hash)
	}
	return h, err
}

func (n *Node) chainID(ctx context.Context) (uint64, error) {
	return asked(ctx, n, decodeQuantity, "eth_chainId")
}

// HasCode reports whether there is a contract at an address.
func (n *Node) HasCode(ctx context.Context, address common.Address) (bool, error) {
	code, err := asked(ctx, n, decodeBytes, "eth_getCode", address, "latest")
	return len(code) > 0, err
}

// passesAtMost is how many blocks below the end Passes follows a chain.
const passesAtMost = 64

// Passes reports whether the chain that ends with end goes through h, a block at most passesAtMost below end. It
// follows the parent hashes: several backends may serve one URL, and the one that returned h may have it at its height
// although it is no longer in the chain of end.
func (n *Node) Passes(ctx context.Context, end, h *Header) (bool, error) {
	if end.Number-h.Number > passesAtMost {
		return false, nil
	}
	for end.Number > h.Number {
		below, err := n.ByHash(ctx, end.Parent)
		if errors.Is(err, ErrNoBlock) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if below.Number != end.Number-1 {
			return false, fmt.Errorf("%s returned block %d as the parent of block %d", n.Name, below.Number, end.Number)
		}
		end = below
	}
	return end.Hash == h.Hash, nil
}

// NamesNoFinal reports whether a node has no finalized block, names its head as final, or does not know the tag, which
// it says with null or one of several messages. It is false if the node merely failed.
func NamesNoFinal(err error) bool {
	if errors.Is(err, ErrNoBlock) || errors.Is(err, ErrNamesHead) {
		return true
	}
	var answer ethrpc.Error
	if !errors.As(err, &answer) {
		return false
	}
	const invalidParams, notSupported = -32602, -32004
	if code := answer.ErrorCode(); code == invalidParams || code == notSupported {
		return true
	}
	text := strings.ToLower(answer.Error())
	for _, wording := range []string{"finalized", "finalised", "not supported", "unsupported", "unknown block", "block not found", "invalid block", "hex string"} {
		if strings.Contains(text, wording) {
			return true
		}
	}
	return false
}

// LogsOf returns the address, topics and data of the logs of a transaction in their order, from whichever block of the
// node's chain contains it; none if no block does.
func (n *Node) LogsOf(ctx context.Context, tx common.Hash) ([]*event.Log, error) {
	return asked(ctx, n, decodeReceipt, "eth_getTransactionReceipt", tx)
}
