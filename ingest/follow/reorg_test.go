package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
)

// onlyNode returns a pool with one node, and the node. Both end with the test.
func onlyNode(t *testing.T, srv *httptest.Server) (*rpc.Pool, *rpc.Node) {
	t.Helper()
	t.Cleanup(srv.Close)
	nodes := rpc.NewPool(1, rpc.Endpoints(srv.URL), 1, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(nodes.Close)
	n, err := nodes.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return nodes, n
}

// Headers that are not sealed can name each other as their parents: a branch of them has no end, so it is not followed.
// Once the node returns their parents, it is.
func TestParentsInACircle(t *testing.T) {
	hash := func(chain, number uint64) common.Hash {
		return common.BigToHash(new(big.Int).SetUint64(1000*chain + number))
	}
	block := func(chain, number uint64) *rpc.Header {
		return &rpc.Header{Number: number, Hash: hash(chain, number), Parent: hash(chain, number-1), Time: 1}
	}
	branch := map[common.Hash]*rpc.Header{}
	for number := uint64(97); number <= 100; number++ {
		branch[hash(2, number)] = block(2, number)
	}
	branch[hash(2, 97)].Parent = hash(1, 96)
	branch[hash(2, 98)].Parent = hash(2, 99)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params []any
		}
		_ = json.NewDecoder(req.Body).Decode(&q)
		h := &rpc.Header{}
		switch q.Method {
		case "eth_chainId":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, q.ID)
			return
		case "eth_getBlockByHash":
			h = branch[common.HexToHash(q.Params[0].(string))]
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"number":"0x%x","hash":"%s","parentHash":"%s","timestamp":"0x1"}}`,
			q.ID, h.Number, h.Hash, h.Parent)
	}))
	nodes, n := onlyNode(t, srv)
	state := &writer.State{Head: block(1, 100)}
	for number := uint64(40); number <= 100; number++ {
		record := writer.BlockFact(block(1, number))
		record.Seq = number
		state.Window.Apply(chainlog.Entry{Record: record})
	}
	f := New(Options{}, &writer.Writer{Options: writer.Options{Window: 64}, State: state}, nodes, nil, slog.New(slog.DiscardHandler))
	for range 2 {
		_, _, err := f.branch(t.Context(), n, branch[hash(2, 100)])
		if !errors.Is(err, rpc.ErrNoBlock) || !strings.Contains(err.Error(), "block 99 when asked for block 97") {
			t.Fatalf("parents in a circle: %v", err)
		}
	}
	branch[hash(2, 98)] = block(2, 98)
	followed, deep, err := f.branch(t.Context(), n, branch[hash(2, 100)])
	if err != nil || deep != "" || len(followed) != 4 || followed[0].Hash != hash(2, 97) {
		t.Errorf("after the circle: %v, %q, %v", followed, deep, err)
	}
}
