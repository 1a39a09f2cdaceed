package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/event"
)

// node is one RPC endpoint.
type node struct {
	name    string // scheme and host: the rest of the URL may hold a key
	url, ws string // ws announces blocks; empty for none
	http    *transport
	health  *health
	limits  *limits
	metrics *callMetrics
	heads   func(*header) // told of every head

	dialling sync.Mutex
	socket   *ethrpc.Client // nil for HTTP, and before the first question
}

// newNode makes an endpoint of a valid configuration, without connecting.
func newNode(e Endpoint, name string, c clock, m *callMetrics) *node {
	n := &node{name: name, url: e.URL, ws: e.WS, health: newHealth(e, c), limits: newLimits(), metrics: m, heads: func(*header) {}}
	if u, err := url.Parse(e.URL); err != nil || u.Scheme == "ws" || u.Scheme == "wss" {
		n.ws = cmp.Or(n.ws, n.url)
	} else {
		n.http = newTransport(u, func(method string, bytes int) { m.answered(name, method, bytes) })
	}
	return n
}

// overSocket gives the WebSocket client, which connects again by itself later.
func (n *node) overSocket(ctx context.Context) (*ethrpc.Client, error) {
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

// lags says that its head is far below that of another endpoint.
func (n *node) lags() bool { return n.health.rank() == lagging }

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

// passesAtMost is how far below the end passes follows a chain.
const passesAtMost = 64

// passes says that the chain that ends with end goes through h, a block not
// above it and not far below. It is followed by hashes: one address may stand for
// several backends, and the one that gave h may have it at its number and not in
// its chain any more.
func (n *node) passes(ctx context.Context, end, h *header) (bool, error) {
	if end.Number-h.Number > passesAtMost {
		return false, nil
	}
	for end.Number > h.Number {
		below, err := n.byHash(ctx, end.Parent)
		if errors.Is(err, errNoBlock) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if below.Number != end.Number-1 {
			return false, fmt.Errorf("%s answers block %d as the parent of block %d", n.name, below.Number, end.Number)
		}
		end = below
	}
	return end.Hash == h.Hash, nil
}

// namesNoFinal says that a node has no finalized block or does not know the
// tag, by null or in one of the wordings of the field, and did not merely fail.
func namesNoFinal(err error) bool {
	if errors.Is(err, errNoBlock) {
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

// still says that a log is in the node's chain, in whichever block.
func (n *node) still(ctx context.Context, l *event.Log) (bool, error) {
	var receipt *struct {
		Logs []struct {
			Address common.Address `json:"address"`
			Topics  []common.Hash  `json:"topics"`
			Data    hexutil.Bytes  `json:"data"`
			Index   hexutil.Uint   `json:"logIndex"`
		} `json:"logs"`
	}
	if err := n.call(ctx, &receipt, "eth_getTransactionReceipt", common.BytesToHash(l.GetTxHash())); err != nil {
		return false, err
	}
	if receipt == nil {
		return false, nil
	}
	for _, have := range receipt.Logs {
		same := uint32(have.Index) == l.GetLogIndex() && bytes.Equal(have.Address[:], l.GetAddress()) && bytes.Equal(have.Data, l.GetData()) &&
			slices.EqualFunc(have.Topics, l.GetTopics(), func(a common.Hash, b []byte) bool { return bytes.Equal(a[:], b) })
		if same {
			return true, nil
		}
	}
	return false, nil
}
