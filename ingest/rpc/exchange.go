package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/telemetry"
)

// callTimeout bounds one call, from sending the request to the last byte of the response.
const callTimeout = 30 * time.Second

// exchange makes a call and returns the bytes of the result, which belong to the caller: one JSON value, whose content
// is not checked. If the node returns an error, errors.As finds an *rpcError; for an HTTP error it finds an *httpError;
// for a rate limit it finds a *limitedError and neither of these. A response of more than maxAnswer bytes is
// errAnswerTooLong.
func (n *Node) exchange(ctx context.Context, method string, params ...any) (result []byte, err error) {
	return n.exchangeUpTo(ctx, maxAnswer, method, params...)
}

// exchangeUpTo accepts a response of at most most bytes, and never more than maxAnswer. Over a WebSocket the bound is
// always maxAnswer.
func (n *Node) exchangeUpTo(ctx context.Context, most int, method string, params ...any) (result []byte, err error) {
	err = n.attempt(ctx, needed, method, 1, func(ctx context.Context) error {
		result, err = n.askOnce(ctx, most, method, params)
		return err
	})
	return result, err
}

// exchangeOptional is exchange for a call that a node can fail at and still be useful.
func (n *Node) exchangeOptional(ctx context.Context, method string, params ...any) (result []byte, err error) {
	err = n.attempt(ctx, optional, method, 1, func(ctx context.Context) error {
		result, err = n.askOnce(ctx, maxAnswer, method, params)
		return err
	})
	return result, err
}

// need says whether a failure at a call means that the node is down.
type need bool

const (
	needed need = true
	// optional: blocks and logs can be read from the node without this call. Some nodes and relays fail at a single
	// method; such a node must not lose its turn or its vote. A node that is really down fails at the next needed call.
	optional need = false
)

// triesAtOnce is how many times a call is made if the endpoint limits it for a short time.
const triesAtOnce = 3

// attempt makes an exchange with a number of calls as soon as the endpoint accepts calls, and updates the endpoint's
// health from the outcome.
func (n *Node) attempt(ctx context.Context, need need, method string, questions int, exchange func(context.Context) error) error {
	for try := 1; ; try++ {
		err := n.health.admit(ctx, questions)
		if err != nil {
			return n.blame(ctx, method, err)
		}
		began := n.health.now()
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err = n.traced(bounded, method, questions, exchange)
		cancel()
		n.metrics.asked(n.Name, method, questions, n.spent.Add(method, questions), n.health.now().Sub(began))
		err = n.health.end(ctx, need, began, contracts.Discreet(plain(err), n.url))
		if err == nil {
			return nil
		}
		var put *limitedError
		if errors.As(err, &put) {
			n.metrics.limited.WithLabelValues(n.Name).Inc()
			// A batch is not repeated unchanged: if each of its calls counts towards the limit, it may always be too
			// long.
			if questions == 1 && try < triesAtOnce && put.until.Sub(n.health.now()) <= shortPause {
				continue
			}
		}
		return n.blame(ctx, method, err)
	}
}

// traced makes one exchange in a span if ctx belongs to a trace.
func (n *Node) traced(
	ctx context.Context, method string, questions int, exchange func(context.Context) error,
) (err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Client, method)
	defer func() { telemetry.End(span, err) }()
	telemetry.Text(span, telemetry.RPCSystem, "jsonrpc")
	telemetry.Text(span, telemetry.RPCMethod, method)
	telemetry.Text(span, telemetry.Server, n.host)
	telemetry.Number(span, telemetry.Questions, questions)
	return exchange(ctx)
}

func (n *Node) askOnce(ctx context.Context, most int, method string, params []any) ([]byte, error) {
	if n.http != nil {
		return n.http.ask(ctx, most, method, params)
	}
	client, err := n.overSocket(ctx)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	err = client.CallContext(ctx, &raw, method, params...)
	n.answered(method, len(raw))
	return raw, err
}

func (n *Node) askAllOnce(ctx context.Context, method string, params [][]any) ([][]byte, error) {
	if n.http != nil {
		return n.http.askAll(ctx, method, params)
	}
	client, err := n.overSocket(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]json.RawMessage, len(params))
	batch := make([]ethrpc.BatchElem, len(params))
	for i := range params {
		batch[i] = ethrpc.BatchElem{Method: method, Args: params[i], Result: &results[i]}
	}
	if err := client.BatchCallContext(ctx, batch); err != nil {
		return nil, err
	}
	raw := make([][]byte, len(params))
	for i := range batch {
		if batch[i].Error != nil {
			return nil, batch[i].Error
		}
		raw[i] = results[i]
		n.answered(method, len(raw[i]))
	}
	return raw, nil
}

// blame counts an error and adds the endpoint and the method to it.
func (n *Node) blame(ctx context.Context, method string, err error) error {
	if ctx.Err() == nil {
		n.metrics.rpcErrors.WithLabelValues(n.Name, method).Inc()
	}
	return fmt.Errorf("%s at %s: %w", method, n.Name, err)
}

// plain converts the error responses that go-ethereum's WebSocket client returns to the type of those over HTTP.
func plain(err error) error {
	var answer ethrpc.Error
	if !errors.As(err, &answer) {
		return err
	}
	out := &rpcError{Code: answer.ErrorCode(), Message: answer.Error()}
	var more ethrpc.DataError
	if errors.As(err, &more) && more.ErrorData() != nil {
		out.Data, _ = json.Marshal(more.ErrorData())
	}
	return out
}
