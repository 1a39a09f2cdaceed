package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxRequest      = 16 << 20 // bytes
	upstreamTimeout = time.Minute
)

// call is one JSON-RPC call of a client.
type call struct {
	ID          json.RawMessage   `json:"id"`
	Method      string            `json:"method"`
	Params      []json.RawMessage `json:"params"`
	*drawnFault `json:"-"`
}

// block returns the block that a call asks for, as its first parameter names it: by a tag, a number or a hash.
func (c *call) block() (which string) {
	if c.Method == "eth_blockNumber" {
		return "latest"
	}
	if len(c.Params) > 0 {
		_ = json.Unmarshal(c.Params[0], &which)
	}
	return which
}

// reply is one JSON-RPC response. Result holds null if the response does.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

func (r reply) bytes() []byte { return mustJSON(r) }

// withError returns the reply with an error instead of a result.
func (r reply) withError(code int, message string) reply {
	r.Result, r.Error = nil, errorOf(code, message)
	return r
}

// withResult returns the reply with another result.
func (r reply) withResult(result any) reply {
	r.Result, r.Error = mustJSON(result), nil
	return r
}

func errorOf(code int, message string) json.RawMessage {
	return mustJSON(map[string]any{"code": code, "message": message})
}

// mustJSON encodes values that came from JSON or are simple enough never to fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// exchange is one HTTP request and the faults drawn for it.
type exchange struct {
	*drawnFault         // of the only call, or of the batch
	body        []byte  // as the client sent it
	calls       []*call // in the client's order
	batch       bool
}

// parse reads a request and draws faults for it. A call that is neither altered nor rejected keeps the bytes that the
// client sent.
func (p *Proxy) parse(ctx context.Context, body []byte) (*exchange, error) {
	x := &exchange{body: body, batch: bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))}
	if !x.batch {
		x.calls = []*call{new(call)}
		if err := json.Unmarshal(body, x.calls[0]); err != nil {
			return nil, fmt.Errorf("the request is not a JSON-RPC call: %w", err)
		}
		c := x.calls[0]
		c.drawnFault = p.draw(ctx, c.Method, func(*kind) bool { return true })
		x.drawnFault = c.drawnFault
		return x, nil
	}
	if err := json.Unmarshal(body, &x.calls); err != nil {
		return nil, fmt.Errorf("the request is not a JSON-RPC batch: %w", err)
	}
	for _, c := range x.calls {
		if c == nil {
			return nil, errors.New("the request is a batch with a null in it")
		}
	}
	x.drawnFault = p.draw(ctx, batch, func(*kind) bool { return true })
	for _, c := range x.calls {
		c.drawnFault = p.draw(ctx, c.Method, func(k *kind) bool { return k.alter != nil })
		c.backend = x.backend
	}
	return x, nil
}

// altered returns the upstream's response, altered by the faults of its calls.
func (p *Proxy) altered(x *exchange) (status int, body []byte, err error) {
	status, original, err := x.post(x.body)
	if err != nil || status != http.StatusOK {
		return status, original, err
	}
	var replies []reply
	if x.batch {
		err = json.Unmarshal(original, &replies)
	} else {
		replies = make([]reply, 1)
		err = json.Unmarshal(original, &replies[0])
	}
	if err != nil {
		return status, original, nil // the upstream itself failed
	}
	changed := false
	for _, c := range x.calls {
		for i, r := range replies {
			if !bytes.Equal(r.ID, c.ID) || c.kind == nil || c.kind.alter == nil || r.Error != nil {
				continue
			}
			answer, detail, err := c.kind.alter(c, r)
			if err != nil {
				return 0, nil, err
			}
			if detail != "" {
				p.injected(c.drawnFault, detail)
				replies[i], changed = answer, true
			}
			break
		}
	}
	switch {
	case !changed:
		return status, original, nil
	case x.batch:
		return status, mustJSON(replies), nil
	}
	return status, replies[0].bytes(), nil
}

// post sends a request to the drawn backend. Errors do not contain its URL, which may contain a key.
func (f *drawnFault) post(body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodPost, f.backend, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("an upstream's URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.proxy.client.Do(request)
	if err != nil {
		var inURL *url.Error
		if errors.As(err, &inURL) {
			err = inURL.Err
		}
		return 0, nil, fmt.Errorf("the upstream does not answer: %w", err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, fmt.Errorf("read the upstream's answer: %w", err)
	}
	return response.StatusCode, answer, nil
}

// ask makes a call of the proxy itself, which is not counted.
func (f *drawnFault) ask(method string, params ...any) (json.RawMessage, error) {
	if params == nil {
		params = []any{}
	}
	_, body, err := f.post(mustJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	if err != nil {
		return nil, err
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("the upstream's answer to %s cannot be parsed: %w", method, err)
	}
	if r.Error != nil {
		return nil, fmt.Errorf("the upstream refuses %s: %s", method, r.Error)
	}
	return r.Result, nil
}

func sendJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no response
}
