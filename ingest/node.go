package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/event"
)

// node is one RPC endpoint.
type node struct {
	name    string // scheme and host: the rest of the URL may hold a key
	url, ws string // ws announces blocks; empty for none
	http    *transport
	health  *health
	metrics *metrics
	heads   func(*header) // told of every head

	dialling sync.Mutex
	socket   *rpc.Client // nil for HTTP, and before the first question
}

// newNode makes an endpoint of a valid configuration, without connecting.
func newNode(e Endpoint, name string, c clock, m *metrics) *node {
	n := &node{name: name, url: e.URL, ws: e.WS, health: newHealth(e, c), metrics: m, heads: func(*header) {}}
	if u, err := url.Parse(e.URL); err != nil || u.Scheme == "ws" || u.Scheme == "wss" {
		n.ws = cmp.Or(n.ws, n.url)
	} else {
		n.http = newTransport(u, func(method string, bytes int) { m.answered(name, method, bytes) })
	}
	return n
}

// overSocket gives the WebSocket client, which connects again by itself later.
func (n *node) overSocket(ctx context.Context) (*rpc.Client, error) {
	n.dialling.Lock()
	defer n.dialling.Unlock()
	if n.socket == nil {
		client, err := rpc.DialOptions(ctx, n.url, rpc.WithWebsocketMessageSizeLimit(maxAnswer))
		if err != nil {
			return nil, err
		}
		n.socket = client
	}
	return n.socket, nil
}

func (n *node) close() {
	n.dialling.Lock()
	defer n.dialling.Unlock()
	if n.socket != nil {
		n.socket.Close()
	}
	if n.http != nil {
		n.http.close()
	}
}

// call asks the node. result must be a pointer.
func (n *node) call(ctx context.Context, result any, method string, args ...any) error {
	raw, err := n.exchange(ctx, method, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		err = fmt.Errorf("the result cannot be read: %w", err)
		n.health.set(func(h *health) { h.fail(h.now(), h.now(), err) })
		return n.blame(ctx, method, err)
	}
	return nil
}

// header is what ingest needs to know about a block.
type header struct {
	Number uint64
	Hash   common.Hash
	Parent common.Hash
	Time   uint64 // Unix seconds
	Bloom  types.Bloom
}

func (h *header) record() *event.Block {
	return &event.Block{Number: h.Number, Hash: h.Hash[:], ParentHash: h.Parent[:], Time: h.Time}
}

func headerOf(b *event.Block) *header {
	return &header{Number: b.GetNumber(), Hash: common.Hash(b.GetHash()), Parent: common.Hash(b.GetParentHash()), Time: b.GetTime()}
}

// errNoBlock says that the node does not have the block that was asked for.
var errNoBlock = errors.New("the node does not have this block")

type rpcHeader struct {
	Number *hexutil.Uint64 `json:"number"`
	Hash   *common.Hash    `json:"hash"`
	Parent common.Hash     `json:"parentHash"`
	Time   hexutil.Uint64  `json:"timestamp"`
	Bloom  *types.Bloom    `json:"logsBloom"`
}

// block reads a header by number ("latest", "finalized" or hex) or by hash. It
// takes the hash as the node gives it: chains differ in what they hash.
func (n *node) block(ctx context.Context, method string, which any) (*header, error) {
	var h *rpcHeader
	if err := n.call(ctx, &h, method, which, false); err != nil {
		return nil, err
	}
	return n.headerOf(h, which)
}

func (n *node) headerOf(h *rpcHeader, which any) (*header, error) {
	if h == nil {
		return nil, fmt.Errorf("block %v at %s: %w", which, n.name, errNoBlock)
	}
	if h.Number == nil || h.Hash == nil || h.Bloom == nil {
		return nil, fmt.Errorf("block %v at %s: the answer has no number, hash or logsBloom", which, n.name)
	}
	return &header{uint64(*h.Number), *h.Hash, h.Parent, uint64(h.Time), *h.Bloom}, nil
}

func (n *node) latest(ctx context.Context) (*header, error) {
	h, err := n.block(ctx, "eth_getBlockByNumber", "latest")
	if err == nil {
		n.heads(h)
	}
	return h, err
}

func (n *node) finalized(ctx context.Context) (*header, error) {
	return n.block(ctx, "eth_getBlockByNumber", "finalized")
}

func (n *node) byNumber(ctx context.Context, number uint64) (*header, error) {
	h, err := n.block(ctx, "eth_getBlockByNumber", hexutil.Uint64(number))
	if err == nil && h.Number != number {
		err = fmt.Errorf("%s answers block %d when asked for block %d", n.name, h.Number, number)
	}
	return h, err
}

func (n *node) byHash(ctx context.Context, hash common.Hash) (*header, error) {
	h, err := n.block(ctx, "eth_getBlockByHash", hash)
	if err == nil && h.Hash != hash {
		err = fmt.Errorf("%s answers block %s when asked for block %s", n.name, h.Hash, hash)
	}
	return h, err
}

func (n *node) chainID(ctx context.Context) (uint64, error) {
	var id hexutil.Uint64
	err := n.call(ctx, &id, "eth_chainId")
	return uint64(id), err
}

func (n *node) hasCode(ctx context.Context, address common.Address) (bool, error) {
	var code hexutil.Bytes
	err := n.call(ctx, &code, "eth_getCode", address, "latest")
	return len(code) > 0, err
}
