package follow

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
)

// A block whose bloom has nothing, on a chain that may not fill its blooms, is read like any other: from its receipts
// if the node does not return its logs by its hash.
func TestBlockWithAnEmptyBloomFromItsReceipts(t *testing.T) {
	h := &rpc.Header{Number: 7, Hash: common.Hash{7}, Time: 1}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(req.Body).Decode(&q)
		answer := `"error":{"code":-32005,"message":"query returned more than 10000 results"}`
		switch q.Method {
		case "eth_chainId":
			answer = `"result":"0x1"`
		case "eth_getBlockByNumber":
			answer = fmt.Sprintf(`"result":{"number":"0x0","hash":"%s"}`, common.Hash{1})
		case "eth_getBlockReceipts":
			answer = `"result":[{"logs":[]}]`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
	}))
	nodes, n := onlyNode(t, srv)
	f := New(Options{Proof: proof.Headers}, nil, nodes, nil, slog.New(slog.DiscardHandler))
	logs, _, proven, err := f.logsOfBlock(t.Context(), n, h, []common.Address{{1}})
	if err != nil || len(logs) > 0 || proven {
		t.Errorf("%d logs, proven %t, %v", len(logs), proven, err)
	}
}
