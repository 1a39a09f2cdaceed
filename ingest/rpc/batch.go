package rpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// batchlessFor is how long an endpoint that takes no batches is asked one question after the other, before a batch is
	// tried again: whatever stood before the node may have been replaced.
	batchlessFor = 15 * time.Minute
	// doubtfulFor is how long that is so after a batch that was not answered at all, which may be the fault of the moment.
	doubtfulFor = time.Minute
	// singlesAtOnce is how many questions are asked at the same time in the place of a batch.
	singlesAtOnce = 8
)

// batchError says that the answer to a batch is none to its questions.
type batchError struct{ err error }

func (e *batchError) Error() string { return e.err.Error() }
func (e *batchError) Unwrap() error { return e.err }

// exchangeBatch asks several questions at once and gives the bytes of their results in the order of the questions. One
// error is the error of all. Of an endpoint that takes no batches, which some relays do not, each question is asked by
// itself; that is remembered for a while. A single question is never sent as a batch.
func (n *Node) exchangeBatch(ctx context.Context, method string, params [][]any) (results [][]byte, err error) {
	switch {
	case len(params) == 0:
		return nil, nil
	case len(params) == 1 || n.limits.batchless(n.health.now()):
		return n.oneByOne(ctx, method, params)
	}
	err = n.attempt(ctx, needed, method, len(params), func(ctx context.Context) error {
		results, err = n.askAllOnce(ctx, method, params)
		return err
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return results, err
	case errors.Is(err, context.DeadlineExceeded):
		n.limits.noBatches(n.health.now().Add(doubtfulFor))
		return nil, err
	case !mayRefuseBatches(ctx, err):
		return nil, err
	}
	// The endpoint takes no batches if it answers the first of the questions, be it with an error of its own.
	if _, alone := n.exchange(ctx, method, params[0]...); alone != nil && !refused(alone) {
		return nil, err
	}
	n.limits.noBatches(n.health.now().Add(batchlessFor))
	return n.oneByOne(ctx, method, params)
}

// oneByOne asks several questions, each in a request of its own.
func (n *Node) oneByOne(ctx context.Context, method string, params [][]any) ([][]byte, error) {
	results := make([][]byte, len(params))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(singlesAtOnce)
	for i := range params {
		asking.Go(func() (err error) {
			results[i], err = n.exchange(ctx, method, params[i]...)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// mayRefuseBatches reports whether the error of a batch may be about batches as such: not about one of the questions, how
// often the endpoint is asked, or how long a batch may be, and not one of an endpoint that is not there.
func mayRefuseBatches(ctx context.Context, err error) bool {
	var put *limitedError
	if errors.As(err, &put) {
		return false
	}
	var whole *batchError
	var answer *rpcError
	if errors.As(err, &answer) && !errors.As(err, &whole) && !isHTTP(err) {
		return strings.Contains(strings.ToLower(beginning(answer.Message)), "batch")
	}
	if refusalOf(ctx, err, 0).kind == tooMuch {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

func isHTTP(err error) bool {
	var status *httpError
	return errors.As(err, &status)
}
