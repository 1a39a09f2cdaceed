package rpc

import (
	"cmp"
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

// call is one JSON-RPC call.
type call struct {
	method   string
	params   []any
	maxBytes int // bytes of the response, 0 for maxAnswer; over a WebSocket it is always maxAnswer
	// optional: blocks and logs can be read without this call, at which some nodes fail. A failure does not count against
	// the node: one that is really down fails at the next other call.
	optional bool
	// vital: every working node responds with a result, so an error is a failure of the node. An expired key or a load
	// balancer without nodes may show only by an error in each response.
	vital bool
}

// Results that are not what was requested.
var (
	// errUnusable means that a result cannot be read or does not belong to the call. It is a failure of the node.
	errUnusable = errors.New("the result is unusable")
	// ErrNoBlock means that the node does not have the requested block.
	ErrNoBlock = errors.New("the node does not have this block")
	// ErrNoReceipts means that a node does not have the receipts of a block, or does not offer the method.
	ErrNoReceipts = errors.New("the node does not give the receipts of the block")
)

// missing reports whether a node responded that it does not have what was requested.
func missing(err error) bool { return errors.Is(err, ErrNoBlock) || errors.Is(err, ErrNoReceipts) }

// asked makes a call and returns its result as decode reads it from the bytes: one JSON value, whose content was not
// checked. Its error contains an *rpcError, an *httpError or a *limitedError; errAnswerTooLong; or errUnusable for a
// result that decode rejects.
func asked[T any](ctx context.Context, n *Node, c call, decode func([]byte) (T, error)) (result T, err error) {
	err = n.request(ctx, c, [][]any{c.params}, func(_ int, raw []byte) (err error) {
		result, err = decode(raw)
		return err
	})
	return result, err
}

func (n *Node) exchange(ctx context.Context, c call) ([]byte, error) {
	return asked(ctx, n, c, func(raw []byte) ([]byte, error) { return raw, nil })
}

// maxAttempts is how many times a call is made if the endpoint limits it for a short time.
const maxAttempts = 3

// request makes one call like c, or a batch of them, with each of params as soon as the endpoint accepts calls, and
// passes the results to read.
func (n *Node) request(ctx context.Context, c call, params [][]any, read func(i int, result []byte) error) error {
	for try := 1; ; try++ {
		err := n.health.admit(ctx, len(params))
		if err != nil {
			return n.annotate(ctx, c.method, err)
		}
		began := n.health.now()
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		results, err := n.send(bounded, c, params)
		cancel()
		n.spent.Add(c.method, len(params))
		n.pool.metrics.rpcSeconds.WithLabelValues(n.Name, c.method).Observe(n.health.now().Sub(began).Seconds())
		// create the series at 0, so that the first error is an increase
		n.pool.metrics.rpcErrors.WithLabelValues(n.Name, c.method)
		for i := 0; err == nil && i < len(results); i++ {
			if err = read(i, results[i]); err != nil && !missing(err) {
				err = fmt.Errorf("%w: %w", errUnusable, err)
			}
		}
		err = n.health.end(ctx, c, began, contracts.Discreet(toRPCError(err), n.url))
		if err == nil {
			return nil
		}
		if put, is := errors.AsType[*limitedError](err); is {
			n.pool.metrics.limited.WithLabelValues(n.Name).Inc()
			// A batch is not repeated unchanged: if each of its calls counts towards the limit, it may always be too
			// long.
			if len(params) == 1 && try < maxAttempts && put.until.Sub(n.health.now()) <= shortPause {
				continue
			}
		}
		return n.annotate(ctx, c.method, err)
	}
}

// send makes one call or a batch of them, in a span if ctx belongs to a trace, and returns the results in their order.
func (n *Node) send(ctx context.Context, c call, params [][]any) (results [][]byte, err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Client, c.method)
	defer func() { telemetry.End(span, err) }()
	telemetry.Text(span, telemetry.RPCSystem, "jsonrpc")
	telemetry.Text(span, telemetry.RPCMethod, c.method)
	telemetry.Text(span, telemetry.Server, n.host)
	telemetry.Number(span, telemetry.Questions, len(params))
	if n.http != nil {
		return n.http.ask(ctx, c.method, params, cmp.Or(c.maxBytes, maxAnswer))
	}
	client, err := n.overSocket(ctx)
	if err != nil {
		return nil, err
	}
	batch := make([]ethrpc.BatchElem, len(params))
	for i := range params {
		batch[i] = ethrpc.BatchElem{Method: c.method, Args: params[i], Result: new(json.RawMessage)}
	}
	if len(batch) == 1 {
		err = client.CallContext(ctx, batch[0].Result, c.method, params[0]...)
	} else {
		err = client.BatchCallContext(ctx, batch)
	}
	for i := 0; err == nil && i < len(batch); i++ {
		result := *batch[i].Result.(*json.RawMessage)
		n.spent.Received(c.method, len(result))
		results, err = append(results, result), batch[i].Error
	}
	return results, err
}

// annotate adds the endpoint and the method to an error, and counts it as one of the node.
func (n *Node) annotate(ctx context.Context, method string, err error) error {
	if ctx.Err() == nil && !missing(err) {
		n.pool.metrics.rpcErrors.WithLabelValues(n.Name, method).Inc()
	}
	return fmt.Errorf("%s at %s: %w", method, n.Name, err)
}

// toRPCError converts the errors of go-ethereum's WebSocket client to the type of those over HTTP.
func toRPCError(err error) error {
	answer, is := errors.AsType[ethrpc.Error](err)
	if !is {
		return err
	}
	out := &rpcError{Code: answer.ErrorCode(), Message: answer.Error()}
	if more, is := errors.AsType[ethrpc.DataError](err); is && more.ErrorData() != nil {
		out.Data, _ = json.Marshal(more.ErrorData())
	}
	return out
}
