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
	Name    string // scheme and host: the rest of the URL may hold a key
	host    string // without a port
	spare   bool   // it is for when the others fail
	url, ws string // ws announces blocks; empty for none
	http    *transport
	health  *health
	limits  *limits
	seals   *seals // of the chain
	metrics *callMetrics
	spent   Bill
	numbers atomic.Bool // contracts are called at numbers of blocks, because the node takes no hash there
	// heads hears of every head, and says what is wrong with one that is not to be believed.
	heads func(context.Context, *Header) error

	dialling sync.Mutex
	socket   *ethrpc.Client // nil for HTTP, and before the first question
}

// newNode makes an endpoint of a valid configuration, without connecting.
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

// Prices are the units of each method at this endpoint; nil for none.
func (n *Node) Prices() map[string]uint64 { return n.spent.Prices }

// answered counts the bytes of an answer.
func (n *Node) answered(method string, bytes int) {
	n.spent.Received(method, bytes)
	n.metrics.answered(n.Name, method, bytes)
}

// overSocket gives the WebSocket client, which connects again by itself later.
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

// CallContract calls a contract at the newest block, and returns what it answers.
func (n *Node) CallContract(ctx context.Context, to common.Address, input []byte) ([]byte, error) {
	return asked(ctx, n, decodeBytes, "eth_call", map[string]any{"to": to, "data": hexutil.Bytes(input)}, "latest")
}

// asked asks a question and decodes the result. What cannot be decoded is the fault of the node.
func asked[T any](ctx context.Context, n *Node, decode func([]byte) (T, error), method string, params ...any) (result T, err error) {
	raw, err := n.exchange(ctx, method, params...)
	if err != nil {
		return result, err
	}
	if result, err = decode(raw); err != nil {
		err = n.blame(ctx, method, n.babbles(fmt.Errorf("the result cannot be read: %w", err)))
	}
	return result, err
}

// babbles notes an answer that cannot be read.
func (n *Node) babbles(err error) error {
	n.health.set(func(h *health) { h.fail(h.now(), h.now(), err) })
	return err
}

// Header is what ingest needs to know about a block.
type Header struct {
	Number uint64
	Hash   common.Hash
	Parent common.Hash
	Time   uint64 // Unix seconds
	Bloom  types.Bloom
	// NoBloom: the node gave the header without one. Bloom is empty then, and says nothing.
	NoBloom bool
	Sealed  bool // its fields hash to Hash; otherwise Bloom is only what a node says
}

// Record is the block as a fact of the log.
func (h *Header) Record() *event.Block {
	return &event.Block{Number: h.Number, Hash: h.Hash[:], ParentHash: h.Parent[:], Time: h.Time}
}

// HeaderOf is the inverse of Record, but for the bloom, which the log does not keep.
func HeaderOf(b *event.Block) *Header {
	return &Header{Number: b.GetNumber(), Hash: common.Hash(b.GetHash()), Parent: common.Hash(b.GetParentHash()), Time: b.GetTime()}
}

// ErrNoBlock says that the node does not have the block that was asked for.
var ErrNoBlock = errors.New("the node does not have this block")

// Lags says that its head is far below that of another endpoint.
func (n *Node) Lags() bool { return n.health.rank() == lagging }

// block reads a header by number ("latest", "finalized" or hex) or by hash. It
// takes the hash as the node gives it: chains differ in what they hash.
func (n *Node) block(ctx context.Context, method string, which any) (*Header, error) {
	result, err := n.exchange(ctx, method, which, false)
	if err != nil {
		return nil, err
	}
	return n.headerAt(result, which)
}

// Latest is the newest block. The pool learns from it which endpoints lag. A head far
// above those of other endpoints is an error unless the node shows that it has such blocks.
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

// ByNumber is the block at a height in the node's chain now.
func (n *Node) ByNumber(ctx context.Context, number uint64) (*Header, error) {
	h, err := n.block(ctx, "eth_getBlockByNumber", hexutil.Uint64(number))
	if err == nil && h.Number != number {
		err = fmt.Errorf("%s answers block %d when asked for block %d", n.Name, h.Number, number)
	}
	return h, err
}

// ByHash is one block, in the node's chain or not.
func (n *Node) ByHash(ctx context.Context, hash common.Hash) (*Header, error) {
	h, err := n.block(ctx, "eth_getBlockByHash", hash)
	if err == nil && h.Hash != hash {
		err = fmt.Errorf("%s answers block %s when asked for block %s", n.Name, h.Hash, hash)
	}
	return h, err
}

func (n *Node) chainID(ctx context.Context) (uint64, error) {
	return asked(ctx, n, decodeQuantity, "eth_chainId")
}

// HasCode says that there is a contract at an address.
func (n *Node) HasCode(ctx context.Context, address common.Address) (bool, error) {
	code, err := asked(ctx, n, decodeBytes, "eth_getCode", address, "latest")
	return len(code) > 0, err
}

// passesAtMost is how far below the end passes follows a chain.
const passesAtMost = 64

// Passes says that the chain that ends with end goes through h, a block not
// above it and not far below. It is followed by hashes: one address may stand for
// several backends, and the one that gave h may have it at its number and not in
// its chain any more.
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
			return false, fmt.Errorf("%s answers block %d as the parent of block %d", n.Name, below.Number, end.Number)
		}
		end = below
	}
	return end.Hash == h.Hash, nil
}

// NamesNoFinal says that a node has no finalized block, names its head as final, or does
// not know the tag, by null or in one of the wordings of the field, and did not merely fail.
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

// LogsOf gives address, topics and data of the logs of a transaction in their order, in
// whichever block of the node's chain it is; none where it is in no block.
func (n *Node) LogsOf(ctx context.Context, tx common.Hash) ([]*event.Log, error) {
	return asked(ctx, n, decodeReceipt, "eth_getTransactionReceipt", tx)
}
