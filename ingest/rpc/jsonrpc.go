package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-faster/jx"

	"github.com/navlog/navlog/schemas/printable"
)

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"` // as the node sent it, nil for none
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (code %d)", printable.Text(e.Message, 300), e.Code)
}

// message returns the beginning of the message in lower case, for comparisons.
func (e *rpcError) message() string { return strings.ToLower(truncated(e.Message)) }

// text returns the beginning of the message and of the data, in lower case, for comparisons. Some proxies write the
// request into the data: a word that a request may contain must be looked for in the message.
func (e *rpcError) text() string { return e.message() + " " + strings.ToLower(truncated(e.Data)) }

// refused reports whether the node itself returned the error, so that the same call with less to return may succeed.
func refused(err error) bool {
	_, is := errors.AsType[*rpcError](err)
	return is
}

// matches reports whether the node itself returned the error, with a text that matches.
func matches(err error, wording *regexp.Regexp) bool {
	answer, is := errors.AsType[*rpcError](err)
	return is && wording.MatchString(answer.text())
}

func hasCode(err error, codes ...int) bool {
	answer, is := errors.AsType[*rpcError](err)
	return is && slices.Contains(codes, answer.Code)
}

// Codes that are clear without a message.
const (
	executionError     = 3
	invalidParams      = -32602
	limitExceeded      = -32005
	methodNotFound     = -32601
	methodNotSupported = -32004
	prunedHistory      = 4444 // for history that EIP-4444 lets a node drop, as go-ethereum and others return it
)

type question struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  []any           `json:"params"` // never null, which some nodes reject
}

func (t *transport) ask(ctx context.Context, method string, params [][]any, most int) ([][]byte, error) {
	questions, place := make([]question, len(params)), make(map[string]int, len(params))
	for i, p := range params {
		id := strconv.AppendUint(nil, t.ids.Add(1), 10)
		questions[i], place[string(id)] = question{"2.0", id, method, append([]any{}, p...)}, i
	}
	if len(params) == 1 {
		body, err := t.post(ctx, method, questions[0], most)
		if err != nil {
			return nil, err
		}
		result, err := resultOf(body, questions[0].ID)
		return [][]byte{result}, withExcerpt(err, body)
	}
	body, err := t.post(ctx, method, questions, most)
	if err != nil {
		return nil, err
	}
	results, err := resultsOf(body, place)
	return results, withExcerpt(err, body)
}

func resultOf(body, id []byte) ([]byte, error) {
	e, err := openEnvelope(body)
	if err != nil {
		return nil, err
	}
	return e.resultFor(id)
}

// resultsOf finds the results in the response to a batch, in any order. place maps the id of each call to its index.
func resultsOf(body []byte, place map[string]int) ([][]byte, error) {
	answers, list, err := openBatch(body, 2*len(place))
	switch {
	case err != nil:
		return nil, err
	case !list && answers[0].failed():
		return nil, faultOf(answers[0].fault)
	case !list:
		return nil, fmt.Errorf("%w: one response to a batch of %d calls", errForeign, len(place))
	}
	results := make([][]byte, len(place))
	for _, e := range answers {
		i, ours := place[string(e.question())]
		if !ours { // an error about the whole batch, or no response to any of the calls
			if e.failed() && none(e.id) {
				return nil, faultOf(e.fault)
			}
			return nil, fmt.Errorf("%w: id %.40q of no call in the batch", errWrongCall, e.id)
		}
		result, err := e.resultFor(e.question())
		if err != nil {
			return nil, err
		}
		if results[i] != nil && !bytes.Equal(results[i], result) {
			return nil, fmt.Errorf("%w: two different responses have the id %.40q", errForeign, e.id)
		}
		results[i] = result
	}
	for i := range results {
		if results[i] == nil {
			return nil, fmt.Errorf("%w: %d responses to a batch of %d calls", errForeign, len(answers), len(place))
		}
	}
	return results, nil
}

// withExcerpt adds the beginning of a body to an error about its form, because the body often says in plain words what
// is wrong.
func withExcerpt(err error, body []byte) error {
	if errors.Is(err, errNotJSON) || errors.Is(err, errForeign) {
		return fmt.Errorf("%w: %s", err, excerpt(body))
	}
	return err
}

func excerpt(body []byte) string {
	return printable.Text(strings.Join(strings.Fields(string(body[:min(len(body), 1000)])), " "), 200)
}

// Faults in the body of a response. All of them are the fault of the node, or of a proxy in front of it.
var (
	errNotJSON   = errors.New("the response is not JSON")
	errForeign   = errors.New("the response is JSON but not a JSON-RPC response")
	errWrongCall = errors.New("the response is to another call")
	errTruncated = errors.New("the response is truncated")
	// errAnswerTooLong means that the call must request less.
	errAnswerTooLong = errors.New("the response is too long")
)

// envelope is the outer object of one JSON-RPC response. Its parts are slices of the body, undecoded: a result of many
// megabytes is only skipped.
type envelope struct {
	id, result, fault []byte // nil if the member is missing
}

func openEnvelope(body []byte) (envelope, error) {
	d := jx.DecodeBytes(body)
	e, err := readEnvelope(d)
	if err == nil {
		err = end(d)
	}
	return e, err
}

// openBatch finds the parts of the responses, at most most, in the body of a batch. A node that rejects the whole batch
// returns a single response: then isList is false. Without the maximum, empty objects would take a hundred times their
// size.
func openBatch(body []byte, most int) (all []envelope, isList bool, err error) {
	if jx.Raw(body).Type() != jx.Array {
		one, err := openEnvelope(body)
		return []envelope{one}, false, err
	}
	err = list(body, "a list of responses", func(d *jx.Decoder) error {
		if len(all) == most {
			return fmt.Errorf("%w: it has more than %d responses to a batch", errForeign, most)
		}
		e, err := readEnvelope(d)
		all = append(all, e)
		return err
	})
	return all, true, err
}

func readEnvelope(d *jx.Decoder) (e envelope, err error) {
	if d.Next() != jx.Object {
		if _, err = next(d); err == nil {
			err = errForeign
		}
		return e, err
	}
	err = members(d, "a response", func(name, value []byte) error {
		switch string(name) {
		case "id":
			e.id = value
		case "result":
			e.result = value
		case "error":
			e.fault = value
		}
		return nil
	})
	return e, err
}

// resultFor returns the bytes of the result for the call with this id, or the error of the response as an *rpcError. A
// response without an id is accepted, because each call has its own HTTP request.
func (e envelope) resultFor(id []byte) ([]byte, error) {
	switch {
	case !bytes.Equal(e.question(), id) && !none(e.id):
		return nil, fmt.Errorf("%w: id %.40q instead of %s", errWrongCall, e.id, id)
	case e.failed():
		return nil, faultOf(e.fault)
	case e.result == nil:
		return nil, fmt.Errorf("%w: it has neither result nor error", errForeign)
	}
	return e.result, nil
}

// question returns the id of a response as its call has it. Some nodes write it as a string, or with a fraction.
func (e envelope) question() []byte {
	id := e.id
	if len(id) >= 2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	if whole, fraction, found := bytes.Cut(id, []byte(".")); found && len(bytes.Trim(fraction, "0")) == 0 {
		id = whole
	}
	return id
}

// failed reports whether a response is an error. If there is also a result, an empty error is ignored.
func (e envelope) failed() bool {
	if none(e.fault) {
		return false
	}
	if none(e.result) {
		return true
	}
	switch string(e.fault) {
	case "false", `""`, "{}", "0":
		return false
	}
	return true
}

// faultOf decodes the member "error". Some nodes write it as a bare string, or its parts with the wrong types.
func faultOf(raw []byte) error {
	fault := new(rpcError)
	if json.Unmarshal(raw, &fault.Message) == nil {
		return fault
	}
	err := object(raw, "an error", func(name, value []byte) error {
		switch string(name) {
		case "code":
			fault.Code = codeOf(value)
		case "message":
			if json.Unmarshal(value, &fault.Message) != nil {
				fault.Message = string(value)
			}
		case "data":
			fault.Data = value
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: its error is %.200q", errForeign, raw)
	}
	return fault
}

func codeOf(raw []byte) int {
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<31 {
		return 0
	}
	return int(f)
}
