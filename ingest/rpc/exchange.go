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
	method string
	params []any
	most   int // bytes of the response, 0 for maxAnswer; over a WebSocket it is always maxAnswer
	// optional: blocks and logs can be read from the node without this call. Some nodes and relays fail at a single
	// method; such a node must not lose its turn or its vote. A node that is really down fails at the next other call.
	optional bool
	// vital: every working node responds to this call with a result, so an error counts as a failure, too. An expired
	// key or a load balancer without nodes may show only by an error in each response.
	vital bool
}

// Results that are not what was requested.
var (
	// errUnusable means that a result cannot be read or does not belong to the call. It is a failure of the node.
	errUnusable = errors.New("the result is unusable")
	// ErrNoBlock means that the node does not have the requested block.
	ErrNoBlock = errors.New("the node does not have this block")
	// ErrNoReceipts means that a node does not have the receipts of a block, or does not offer eth_getBlockReceipts at
	// all.
	ErrNoReceipts = errors.New("the node does not give the receipts of the block")
)

// missing reports whether a node responded that it does not have what was requested.
func missing(err error) bool { return errors.Is(err, ErrNoBlock) || errors.Is(err, ErrNoReceipts) }

// ask makes a call and passes the bytes of the result to read: one JSON value, whose content was not checked. If the
// node returns an error, errors.As finds an *rpcError; for an HTTP error it finds an *httpError; for a rate limit it
// finds a *limitedError and neither of these. A response that is too long is errAnswerTooLong, and a result that read
// rejects is errUnusable.
func (n *Node) ask(ctx context.Context, c call, read func(result []byte) error) error {
	var result []byte
	return n.attempt(ctx, c, 1, func(ctx context.Context) (err error) {
		result, err = n.askOnce(ctx, c)
		return err
	}, func() error { return read(result) })
}

// asked makes a call and returns its decoded result.
func asked[T any](ctx context.Context, n *Node, c call, decode func([]byte) (T, error)) (result T, err error) {
	err = n.ask(ctx, c, func(raw []byte) (err error) {
		result, err = decode(raw)
		return err
	})
	return result, err
}

// exchange makes a call and returns the bytes of its result.
func (n *Node) exchange(ctx context.Context, c call) ([]byte, error) {
	return asked(ctx, n, c, func(raw []byte) ([]byte, error) { return raw, nil })
}

// triesAtOnce is how many times a call is made if the endpoint limits it for a short time.
const triesAtOnce = 3

// attempt makes an exchange with a number of calls like c as soon as the endpoint accepts calls, reads the results, and
// updates the endpoint's health from the outcome.
func (n *Node) attempt(ctx context.Context, c call, questions int, exchange func(context.Context) error,
	read func() error) error {
	for try := 1; ; try++ {
		err := n.health.admit(ctx, questions)
		if err != nil {
			return n.blame(ctx, c.method, err)
		}
		began := n.health.now()
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err = n.traced(bounded, c.method, questions, exchange)
		cancel()
		n.spent.Add(c.method, questions)
		n.pool.metrics.rpcSeconds.WithLabelValues(n.Name, c.method).Observe(n.health.now().Sub(began).Seconds())
		// create the series at 0, so that the first error is an increase
		n.pool.metrics.rpcErrors.WithLabelValues(n.Name, c.method)
		if err == nil {
			if err = read(); err != nil && !missing(err) {
				err = fmt.Errorf("%w: %w", errUnusable, err)
			}
		}
		err = n.health.end(ctx, c, began, contracts.Discreet(plain(err), n.url))
		if err == nil {
			return nil
		}
		if put, is := errors.AsType[*limitedError](err); is {
			n.pool.metrics.limited.WithLabelValues(n.Name).Inc()
			// A batch is not repeated unchanged: if each of its calls counts towards the limit, it may always be too
			// long.
			if questions == 1 && try < triesAtOnce && put.until.Sub(n.health.now()) <= shortPause {
				continue
			}
		}
		return n.blame(ctx, c.method, err)
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

func (n *Node) askOnce(ctx context.Context, c call) ([]byte, error) {
	if n.http != nil {
		return n.http.ask(ctx, cmp.Or(c.most, maxAnswer), c.method, c.params)
	}
	client, err := n.overSocket(ctx)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	err = client.CallContext(ctx, &raw, c.method, c.params...)
	n.spent.Received(c.method, len(raw))
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
	results := make([][]byte, len(params))
	batch := make([]ethrpc.BatchElem, len(params))
	for i := range params {
		batch[i] = ethrpc.BatchElem{Method: method, Args: params[i], Result: (*json.RawMessage)(&results[i])}
	}
	if err := client.BatchCallContext(ctx, batch); err != nil {
		return nil, err
	}
	for i := range batch {
		if batch[i].Error != nil {
			return nil, batch[i].Error
		}
		n.spent.Received(method, len(results[i]))
	}
	return results, nil
}

// blame adds the endpoint and the method to an error, and counts it as one of the node.
func (n *Node) blame(ctx context.Context, method string, err error) error {
	if ctx.Err() == nil && !missing(err) {
		n.pool.metrics.rpcErrors.WithLabelValues(n.Name, method).Inc()
	}
	return fmt.Errorf("%s at %s: %w", method, n.Name, err)
}

// plain converts the error responses that go-ethereum's WebSocket client returns to the type of those over HTTP.
func plain(err error) error {
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
