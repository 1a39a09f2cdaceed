package explain

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// emitsOneLog is the code of a contract that emits a log when it is created.
const emitsOneLog = "0x60006000a000"

// free is a pay function without a charge.
func free() error { return nil }

// TestBlockOfARealNode: logs of all transaction types that a development chain creates are proven, several in one
// block.
func TestBlockOfARealNode(t *testing.T) {
	a := enginetest.Anvil(t, engines.AnvilOptions{NoMining: true})
	c, err := rpc.DialContext(t.Context(), a.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func(out any, method string, params ...any) {
		t.Helper()
		if err := c.CallContext(t.Context(), out, method, params...); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	var accounts []common.Address
	call(&accounts, "eth_accounts")
	var sent common.Hash
	for _, more := range []map[string]any{{"gasPrice": "0x77359400"},
		{"gasPrice": "0x77359400", "type": "0x1", "accessList": []any{}}, {"type": "0x2"}} {
		more["from"], more["data"], more["gas"] = accounts[0], emitsOneLog, "0x30000"
		call(&sent, "eth_sendTransaction", more)
	}
	call(nil, "evm_mine")
	var block struct{ Hash common.Hash }
	call(&block, "eth_getBlockByNumber", "latest", false)
	n, err := NewNode(a.URL, 100)
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.Block(t.Context(), block.Hash, free)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[byte]bool{}
	for index := range uint32(3) {
		l, p, err := b.Log(index)
		if err != nil || l == nil {
			t.Fatalf("log %d: %v, %v", index, l, err)
		}
		if _, got, err := p.Verify(block.Hash); err != nil || got.Address != l.Address ||
			p.TransactionIndex != uint64(index) {
			t.Fatalf("log %d: %v, %v", index, got, err)
		}
		kinds[p.Receipt[0]] = true
	}
	if len(kinds) != 3 {
		t.Errorf("the receipts begin with %v, want three types", kinds)
	}
	if _, err := n.Block(t.Context(), common.Hash{1}, free); !errors.Is(err, errNoBlock) {
		t.Errorf("a missing block: %v", err)
	}
}

// TestNodeIsBounded: a call to a slow node ends when the caller's context does, and so does the wait for the rate
// limit. No error contains the key.
func TestNodeIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.CloseClientConnections()
	n, err := NewNode(server.URL+"/v1/secretkey", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := n.Block(ctx, common.Hash{1}, free)
		cancel()
		if err == nil || strings.Contains(err.Error(), "secretkey") {
			t.Errorf("a node that does not respond: %v", err)
		}
	}
	if err := CheckNodeURL("ws://node.example/secretkey"); err == nil ||
		err.Error() != "is of ws://node.example and must be the http:// or https:// URL of a node" {
		t.Errorf("a WebSocket: %v", err)
	}
}
