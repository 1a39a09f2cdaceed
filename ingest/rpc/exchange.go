package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/telemetry"
)

// callTimeout bounds one call, from sending the request to the last byte of the response.
const callTimeout = 30 * time.Second

// rpcError is an error response of a node. It implements ethrpc.Error and ethrpc.DataError of go-ethereum.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"` // as the node sent it, nil for none
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (code %d)", printable.Text(e.Message, 300), e.Code)
}
func (e *rpcError) ErrorCode() int { return e.Code }

// ErrorData returns the data as decoded by encoding/json, nil for none.
func (e *rpcError) ErrorData() any {
	var data any
	_ = json.Unmarshal(e.Data, &data)
	return data
}

// refused reports whether the node itself returned the error, so that the same call with less to return may succeed.
func refused(err error) bool {
	var answer ethrpc.Error
	return errors.As(err, &answer)
}

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

// plain converts the errors of both transports to one type.
func plain(err error) error {
	if err == nil {
		return nil
	}
	var ours *rpcError
	var answer ethrpc.Error
	if !errors.As(err, &ours) && errors.As(err, &answer) {
		out := &rpcError{Code: answer.ErrorCode(), Message: answer.Error()}
		var more ethrpc.DataError
		if errors.As(err, &more) && more.ErrorData() != nil {
			out.Data, _ = json.Marshal(more.ErrorData())
		}
		return out
	}
	return err
}

// question is a JSON-RPC request.
type question struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  []any           `json:"params"`
}

func newQuestion(id uint64, method string, params []any) question {
	if params == nil {
		params = []any{}
	}
	return question{"2.0", strconv.AppendUint(nil, id, 10), method, params}
}

func (t *transport) ask(ctx context.Context, most int, method string, params []any) ([]byte, error) {
	q := newQuestion(t.ids.Add(1), method, params)
	body, err := t.post(ctx, method, q, most)
	if err != nil {
		return nil, err
	}
	e, err := openEnvelope(body)
	if err != nil {
		return nil, quoting(err, body)
	}
	result, err := e.about(q.ID)
	return result, quoting(err, body)
}

func (t *transport) askAll(ctx context.Context, method string, params [][]any) ([][]byte, error) {
	questions, place := make([]question, len(params)), make(map[string]int, len(params))
	for i := range params {
		questions[i] = newQuestion(t.ids.Add(1), method, params[i])
		place[string(questions[i].ID)] = i
	}
	body, err := t.post(ctx, method, questions, maxAnswer)
	if err != nil {
		return nil, err
	}
	results, err := resultsOf(body, place)
	return results, quoting(err, body)
}

// resultsOf finds the results in the response to a batch. place maps the id of each call to its index. The results may
// come in any order, and one may come more than once.
func resultsOf(body []byte, place map[string]int) ([][]byte, error) {
	answers, list, err := openBatch(body)
	switch {
	case err != nil:
		return nil, &batchError{err}
	case !list && answers[0].failed():
		return nil, &batchError{faultOf(answers[0].fault)}
	case !list:
		return nil, &batchError{fmt.Errorf("%w: one response to a batch of %d calls", errForeign, len(place))}
	}
	results := make([][]byte, len(place))
	for _, e := range answers {
		i, ours := place[string(e.question())]
		if !ours { // an error about the whole batch, or no response to any of the calls
			if e.failed() && none(e.id) {
				return nil, &batchError{faultOf(e.fault)}
			}
			return nil, &batchError{fmt.Errorf("%w: id %.40q of no call in the batch", errWrongID, e.id)}
		}
		result, err := e.about(e.question())
		if err != nil {
			return nil, err
		}
		if results[i] != nil && !bytes.Equal(results[i], result) {
			return nil, &batchError{fmt.Errorf("%w: two different responses have the id %.40q", errForeign, e.id)}
		}
		results[i] = result
	}
	for i := range results {
		if results[i] == nil {
			return nil, &batchError{fmt.Errorf("%w: %d responses to a batch of %d calls", errForeign, len(answers), len(place))}
		}
	}
	return results, nil
}

// quoting adds the beginning of a body to an error about its form, because the body often says in plain words what is
// wrong.
func quoting(err error, body []byte) error {
	if errors.Is(err, errNotJSON) || errors.Is(err, errForeign) {
		return fmt.Errorf("%w: %s", err, excerpt(body))
	}
	return err
}

// excerpt returns the beginning of a body on one line.
func excerpt(body []byte) string {
	return printable.Text(strings.Join(strings.Fields(string(body[:min(len(body), 1000)])), " "), 200)
}
