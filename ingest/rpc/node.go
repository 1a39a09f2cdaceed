package rpc

import (
	"cmp"
	"context"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// Node is one RPC endpoint.
type Node struct {
	pool    *Pool
	Name    string // scheme and host only: the rest of the URL may contain a key
	host    string // without the port
	spare   bool   // takes no ranges of a backfill
	url, ws string // ws announces new blocks; empty for none
	http    *transport
	health  *health
	limits  *limits
	spent   Bill
	numbers atomic.Bool // contracts are called by block number, because the node does not accept a hash

	logCheck sync.Mutex // held while it is checked whether the node has old logs

	dialling sync.Mutex
	socket   *ethrpc.Client // nil for HTTP, and before the first call
}

func (p *Pool) newNode(e Endpoint, name string) *Node {
	n := &Node{pool: p, Name: name, spare: e.Spare, url: e.URL, ws: e.WS, health: newHealth(e, p.clock),
		limits: newLimits(), spent: Bill{Prices: e.Prices}}
	u, err := url.Parse(e.URL)
	if err == nil {
		n.host = u.Hostname()
	}
	if err != nil || u.Scheme == "ws" || u.Scheme == "wss" {
		n.ws = cmp.Or(n.ws, n.url)
	} else {
		n.http = newTransport(u, n.spent.Received)
	}
	return n
}

// Prices returns the units per call at this endpoint, by method; nil for none.
func (n *Node) Prices() map[string]uint64 { return n.spent.Prices }

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

func (n *Node) chainID(ctx context.Context) (uint64, error) {
	return asked(ctx, n, call{method: "eth_chainId", vital: true}, quantity)
}

// HasCode reports whether there is a contract at an address. Code at the newest block is enough; its absence counts
// only at the end of a given block, because a backend that lags has none yet.
func (n *Node) HasCode(ctx context.Context, address common.Address, at *Header) (bool, error) {
	const method = "eth_getCode"
	code, err := asked(ctx, n, call{method: method, params: []any{address, "latest"}}, decodeBytes)
	if err != nil || len(code) > 0 {
		return err == nil, err
	}
	if code, err = n.atEndOf(ctx, at, method, address); err == nil {
		err = n.checkCanonical(ctx, []Sample{{At: at}})
	}
	return len(code) > 0, err
}
