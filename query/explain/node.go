package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/time/rate"

	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/contracts"
)

var (
	// errNoBlock reports that the node has no block with the hash: the node is behind, or the block has left the
	// chain.
	errNoBlock = errors.New("the node does not have this block")
	// errNoReceipts reports that the node does not return the receipts of a block that it has.
	errNoReceipts = errors.New("the node returns no receipts of the block for eth_getBlockReceipts")
	// errTooLong reports that a response is longer than contracts.MaxAnswer bytes.
	errTooLong = fmt.Errorf("the node's response has more than %d MiB", contracts.MaxAnswer>>20)
)

// Node is a node of the chain, used over HTTP.
type Node struct {
	url    string
	client *rpc.Client
	pace   *rate.Limiter
	kept   *kept
}

// NewNode returns a client of the node at a URL, which CheckNodeURL has accepted, with at most perSecond calls per
// second. It does not connect yet.
func NewNode(rawURL string, perSecond int) (*Node, error) {
	client := contracts.NodeClient(&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: time.Minute,
	})
	c, err := rpc.DialOptions(context.Background(), rawURL, rpc.WithHTTPClient(client))
	if err != nil {
		return nil, contracts.Discreet(err, rawURL)
	}
	return &Node{url: rawURL, client: c, pace: rate.NewLimiter(rate.Limit(perSecond), perSecond),
		kept: newKept(keptBytes)}, nil
}

// CheckNodeURL returns nil if a node can be reached over HTTP with the URL. The error does not repeat the parts of the
// URL that may be a key.
func CheckNodeURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("is of %s and must be the http:// or https:// URL of a node", contracts.EndpointName(rawURL))
	}
	return nil
}

// Block returns the block with a hash, proven. pay is called before each call to the node, and its error ends the
// work. The error is a *chainproof.WrongError if the node's response does not match the hash, a
// *chainproof.UnprovableError if the chain has no data to prove it with, one of the errors above, that of pay, or a
// failure of the node.
func (n *Node) Block(ctx context.Context, hash common.Hash, pay func() error) (*ProvenBlock, error) {
	if b := n.kept.get(hash); b != nil {
		return b, nil
	}
	raw, err := n.ask(ctx, pay, "eth_getBlockByHash", hash, false)
	if err != nil {
		return nil, err
	}
	size := len(raw)
	header, err := chainproof.ReadHeader(raw)
	switch {
	case err != nil:
		return nil, err
	case header == nil:
		return nil, errNoBlock
	}
	if raw, err = n.ask(ctx, pay, "eth_getBlockReceipts", hash); err != nil {
		return nil, err
	}
	size += len(raw)
	receipts, err := chainproof.ReadReceipts(raw)
	switch {
	case err != nil:
		return nil, err
	case receipts == nil:
		return nil, errNoReceipts
	}
	proven, err := chainproof.Prove(hash, header, receipts)
	if err != nil {
		return nil, err
	}
	b := &ProvenBlock{proven: proven}
	n.kept.put(hash, b, size)
	return b, nil
}

const methodNotFound = -32601

func (n *Node) ask(
	ctx context.Context, pay func() error, method string, params ...any,
) (raw json.RawMessage, err error) {
	if err := pay(); err != nil {
		return nil, err
	}
	if err := n.pace.Wait(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w: waited for the limit of calls per second (http.proofCallsPerSecond)", method, err)
	}
	err = n.client.CallContext(ctx, &raw, method, params...)
	var long *http.MaxBytesError
	var answer rpc.Error
	switch {
	case err == nil:
		return raw, nil
	case errors.As(err, &long):
		return nil, errTooLong
	case errors.As(err, &answer) && answer.ErrorCode() == methodNotFound && method == "eth_getBlockReceipts":
		return nil, errNoReceipts
	}
	return nil, fmt.Errorf("%s at %s: %w", method, contracts.EndpointName(n.url), contracts.Discreet(err, n.url))
}

// keptBytes limits the cache of proven blocks, measured by the length of the node's responses: a few hundred blocks
// of Ethereum mainnet. In memory they take about twice that.
const keptBytes = 64 << 20

// ProvenBlock is a proven block. It is safe for concurrent use.
type ProvenBlock struct {
	mu     sync.Mutex // go-ethereum's trie is not safe for concurrent use
	proven *chainproof.Block
}

// Log returns the log with an index in the block, and its proof: see chainproof.Block.
func (b *ProvenBlock) Log(index uint32) (*types.Log, *chainproof.Proof, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proven.Log(index)
}

// kept is a cache of the most recently used proven blocks. Entries never become stale, because the hash identifies
// the content.
type kept struct {
	limit int // bytes

	mu     sync.Mutex
	size   int
	blocks lru.BasicLRU[common.Hash, keptBlock]
}

type keptBlock struct {
	*ProvenBlock
	size int
}

func newKept(limit int) *kept {
	return &kept{limit: limit, blocks: lru.NewBasicLRU[common.Hash, keptBlock](math.MaxInt)}
}

func (k *kept) get(hash common.Hash) *ProvenBlock {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, _ := k.blocks.Get(hash)
	return b.ProvenBlock
}

// put caches a block of the given size and evicts the least recently used ones.
func (k *kept) put(hash common.Hash, b *ProvenBlock, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blocks.Contains(hash) || size > k.limit {
		return
	}
	k.blocks.Add(hash, keptBlock{b, size})
	for k.size += size; k.size > k.limit; {
		_, oldest, _ := k.blocks.RemoveOldest()
		k.size -= oldest.size
	}
}
