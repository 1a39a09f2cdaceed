package rpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// HeadersAtOnce is the maximum number of headers in one batch.
const HeadersAtOnce = 100

// singlesAtOnce is how many calls that replace a batch are in flight at the same time.
const singlesAtOnce = 8

// batchError means that the response to a batch does not answer its calls.
type batchError struct{ err error }

func (e *batchError) Error() string { return e.err.Error() }
func (e *batchError) Unwrap() error { return e.err }

// exchangeBatch makes several calls in one request and passes the bytes of their results to read, in any order and
// perhaps at the same time. If one of them fails, all fail with its error. An endpoint that rejects batches, as some
// relays do, receives each call in a request of its own; this is remembered for a while. A single call is never sent as
// a batch.
func (n *Node) exchangeBatch(ctx context.Context, method string, params [][]any, read func(i int, result []byte) error) error {
	switch {
	case len(params) == 0:
		return nil
	case len(params) == 1 || n.limits.batchless(n.health.now()):
		return n.oneByOne(ctx, method, params, read)
	}
	var results [][]byte
	err := n.attempt(ctx, call{method: method}, len(params), func(ctx context.Context) (err error) {
		results, err = n.askAllOnce(ctx, method, params)
		return err
	}, func() error {
		for i, result := range results {
			if err := read(i, result); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
		n.limits.takesBatches(n.health.now())
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		n.limits.noBatches(n.health.now(), err)
		return err
	case !mayRefuseBatches(ctx, err):
		return err
	}
	// The endpoint rejects batches if it answers the first call on its own, even with an error.
	if _, single := n.exchange(ctx, call{method: method, params: params[0]}); single != nil && !refused(single) {
		return err
	}
	n.limits.noBatches(n.health.now(), err)
	return n.oneByOne(ctx, method, params, read)
}

// oneByOne makes several calls, each in a request of its own.
func (n *Node) oneByOne(ctx context.Context, method string, params [][]any, read func(i int, result []byte) error) error {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(singlesAtOnce)
	for i := range params {
		asking.Go(func() error {
			return n.ask(ctx, call{method: method, params: params[i]}, func(result []byte) error { return read(i, result) })
		})
	}
	return asking.Wait()
}

// mayRefuseBatches reports whether the error of a batch may mean that the endpoint rejects all batches. It does not
// mean this if it is about one of the calls or results, a rate limit, the size of the batch, or an endpoint that cannot
// be reached.
func mayRefuseBatches(ctx context.Context, err error) bool {
	var put *limitedError
	if errors.As(err, &put) || reverted(err) || errors.Is(err, errUnusable) || missing(err) {
		return false
	}
	var whole *batchError
	var answer *rpcError
	if errors.As(err, &answer) && !errors.As(err, &whole) && !isHTTP(err) {
		return strings.Contains(strings.ToLower(beginning(answer.Message)), "batch")
	}
	kind, batch := refusalOf(ctx, err).kind, strings.Contains(strings.ToLower(beginning(err.Error())), "batch")
	if kind == tooMuch || !batch && (kind == absent || lacksState(err)) {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

func isHTTP(err error) bool {
	var status *httpError
	return errors.As(err, &status)
}

// inBatches makes a call for each of params, in batches as long as the endpoint accepts, and passes the results to
// read, in any order and perhaps at the same time.
//
// Many providers count each call of a batch, so a batch is no longer than the rate limit allows at once, and one that
// was too much is halved and repeated. Once it has results, inBatches waits for an endpoint that limits it: if it threw
// them away, more calls than the limit of a minute could never be completed.
func (n *Node) inBatches(ctx context.Context, method string, params [][]any, read func(i int, result []byte) error) error {
	var waited time.Duration // since the last response
	for at := 0; at < len(params); {
		some := params[at:min(len(params), at+n.limits.callsAtOnce(), at+min(n.health.atOnce(), len(params)))]
		err := n.exchangeBatch(ctx, method, some, func(i int, result []byte) error { return read(at+i, result) })
		var put *limitedError
		if errors.As(err, &put) {
			shorter := put.asked && n.limits.fewerCalls(len(some))
			pause := n.health.rests()
			if waited += pause; at == 0 && !shorter || waited > longestPause {
				return err
			}
			if err := n.health.sleep(ctx, pause); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			if r := refusalOf(ctx, err); (r.kind == tooMuch || r.kind == unclear) && n.limits.fewerCalls(len(some)) {
				continue
			}
			return err
		}
		waited = 0
		n.limits.gaveCalls(len(some))
		at += len(some)
	}
	return nil
}
