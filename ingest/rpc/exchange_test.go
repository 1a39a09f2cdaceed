package rpc

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// socketChain is a node with blocks below 5, behind go-ethereum's server.
type socketChain struct{}

func (socketChain) ChainId() hexutil.Uint64 { return 7 }

func (socketChain) GetBlockByNumber(number hexutil.Uint64, _ bool) (map[string]any, error) {
	if number >= 5 {
		return nil, tooHigh{}
	}
	hash, parent := common.Hash{byte(number) + 1}, common.Hash{byte(number)}
	return map[string]any{"number": number, "hash": hash, "parentHash": parent, "timestamp": "0x1"}, nil
}

// tooHigh is an ethrpc.Error.
type tooHigh struct{}

func (tooHigh) Error() string  { return "too high" }
func (tooHigh) ErrorCode() int { return limitExceeded }

// Calls over a WebSocket, single ones and batches, return what those over HTTP do, and errors of the same type.
func TestCallsOverAWebSocket(t *testing.T) {
	node := ethrpc.NewServer()
	t.Cleanup(node.Stop)
	if err := node.RegisterName("eth", socketChain{}); err != nil {
		t.Fatal(err)
	}
	for scheme, handler := range map[string]http.Handler{"http": node, "ws": node.WebsocketHandler([]string{"*"})} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		n := noPool(wallClock).newNode(Endpoint{URL: strings.Replace(server.URL, "http", scheme, 1)}, scheme)
		t.Cleanup(n.close)
		if id, err := n.chainID(t.Context()); err != nil || id != 7 {
			t.Errorf("%s: chain %d, %v", scheme, id, err)
		}
		if headers, err := n.Headers(t.Context(), 1, 4); err != nil || len(headers) != 4 || headers[3].Number != 4 {
			t.Errorf("%s: headers %v, %v", scheme, headers, err)
		}
		_, single := n.ByNumber(t.Context(), 5)
		batch := n.request(t.Context(), call{method: "eth_getBlockByNumber"}, [][]any{{"0x4", false}, {"0x5", false}},
			func(int, []byte) error { return errors.New("no result may be read") })
		for _, err := range []error{single, batch} {
			if !hasCode(err, limitExceeded) || !strings.Contains(err.Error(), "too high (code -32005)") {
				t.Errorf("%s: %v", scheme, err)
			}
		}
		for _, c := range n.spent.Calls() {
			if c.Bytes == 0 {
				t.Errorf("%s: the bytes of %s are not counted", scheme, c.Method)
			}
		}
	}
}

// No error and no status contains the key in a URL, even if the server repeats the path.
func TestErrorsKeepURLsSecret(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot POST "+r.URL.RequestURI(), http.StatusNotFound)
	}))
	t.Cleanup(echo.Close)
	for _, server := range []string{closed.URL, echo.URL} {
		for _, scheme := range []string{"http", "ws"} {
			u, err := url.Parse(server)
			if err != nil {
				t.Fatal(err)
			}
			u.Scheme, u.User, u.Path, u.RawQuery = scheme, url.UserPassword("someone", "hunter2"), "/v3/secretkey",
				"apikey=secret2"
			n := noPool(wallClock).newNode(Endpoint{URL: u.String()}, scheme+"://"+u.Host)
			_, err = n.chainID(t.Context())
			n.close()
			if err == nil {
				t.Fatalf("%s responds", u)
			}
			for _, secret := range []string{"hunter2", "secret", "someone"} {
				if text := err.Error() + n.health.status("").LastError; strings.Contains(text, secret) {
					t.Errorf("the error or the status of %s holds %q: %s", u, secret, text)
				}
			}
		}
	}
}

func TestBackoffGrows(t *testing.T) {
	b := new(Backoff)
	for range 20 {
		if b.next > lastPause {
			t.Fatalf("the pause is %s", b.next)
		}
		done, cancel := contextDone(t)
		_ = b.Sleep(done)
		cancel()
	}
	if b.next != lastPause {
		t.Errorf("after 20 failures the pause is %s, want %s", b.next, lastPause)
	}
	if b.Reset(); b.next != 0 {
		t.Errorf("after success the pause is %s, want %s", b.next, firstPause)
	}
}
