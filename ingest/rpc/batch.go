package rpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// MaxBatchHeaders is the maximum number of headers in one batch.
	MaxBatchHeaders = 100
	// maxConcurrentCalls is how many calls are in flight at the same time where no batch is sent.
	maxConcurrentCalls = 8
)

// callInBatches makes a call for a header for each of params, in batches as long as the endpoint accepts, and passes
// the results to read, in any order and perhaps at the same time. A batch that was too much is halved and repeated. A
// single call is never sent as a batch, because some relays reject batches: they get several single calls at once.
func (n *Node) callInBatches(ctx context.Context, method string, params [][]any,
	read func(i int, result []byte) error) error {
	some := func(from, size, most int) error {
		return n.request(ctx, call{method: method, maxBytes: most}, params[from:from+size],
			func(i int, result []byte) error { return read(from+i, result) })
	}
	batch := func(from, size int) (again bool, err error) {
		err = some(from, size, maxAnswer)
		if _, put := errors.AsType[*limitedError](err); err == nil || put {
			return false, err
		}
		return n.shortenBatches(ctx, call{method: method, params: params[from]}, size, err), err
	}
	return n.callAll(ctx, len(params), longestPause, batch, func(i int) error { return some(i, 1, maxHeader) })
}

// callAll makes so many calls: batches by batch, which reports whether to repeat a failed one, and single calls by one.
// batch may be nil. callAll waits for an endpoint that limits it, for at most patience between two
// responses, and repeats the calls at which the endpoint failed if others succeeded since it failed last. It gives up
// an endpoint that fails often or, without batches, one whose long pauses add up to more than patience: another one may
// be better.
func (n *Node) callAll(
	ctx context.Context, calls int, patience time.Duration, batch func(from, size int) (again bool, err error),
	one func(i int) error,
) error {
	var waited, long time.Duration // since the last response without an error; in long pauses
	singles := min(maxConcurrentCalls, n.health.atOnce())
	done := make([]bool, calls)
	before := 0 // calls that were done when the endpoint failed last
	for at := 0; at < calls; {
		if done[at] {
			at++
			continue
		}
		size, again, err := 1, false, error(nil)
		if batch != nil {
			size = min(n.limits.callsAtOnce(), n.health.atOnce(), calls-at)
		}
		if size > 1 {
			again, err = batch(at, size)
		} else {
			err = callSingly(done[at:min(calls, at+singles)], func(i int) error { return one(at + i) })
		}
		switch {
		case err == nil:
			if waited = 0; batch != nil {
				n.limits.batchSucceeded(size)
			}
			at += size
			continue
		case again:
			continue
		}
		made := at
		for _, done := range done[at:] {
			if done {
				made++
			}
		}
		pause := n.health.pauseLeft()
		waited += pause
		enough := waited > patience
		if put, is := errors.AsType[*limitedError](err); is {
			shorter := put.asked && (n.limits.batchRefused(size, 0) || min(singles, calls-at) > 1)
			singles = 1
			if pause > shortPause {
				long += pause
			}
			enough = enough || made == 0 && !shorter || batch == nil && long > patience
		} else {
			hangs := size == 1 && refusalOf(ctx, err).kind == unanswered
			enough = enough || ctx.Err() != nil || isAnswer(err) || hangs || made == before || pause > shortPause
			before = made
		}
		if enough {
			return err
		}
		if err := n.health.sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// callSingly makes the calls that are not done, each in a separate request. Of several errors it prefers that of a call
// that the endpoint limited: the calls after it may not have been made.
func callSingly(done []bool, one func(i int) error) error {
	errs := make([]error, len(done))
	var asking sync.WaitGroup
	for i := range done {
		if done[i] {
			continue
		}
		asking.Go(func() {
			errs[i] = one(i)
			done[i] = errs[i] == nil
		})
	}
	asking.Wait()
	var first error
	for _, err := range errs {
		if put, is := errors.AsType[*limitedError](err); is && put.asked {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// shortenBatches shortens the batches to an endpoint after one failed, and reports whether to repeat it: it was too
// much, or its error may be about batches, as it is if the endpoint responds to its first call on its own, even with an
// error. An error about one of the calls or their results is none of these, unless the result is that of another call,
// nor is that of an endpoint that cannot be reached.
func (n *Node) shortenBatches(ctx context.Context, first call, size int, err error) bool {
	kind := refusalOf(ctx, err).kind
	op, offline := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil, missing(err), errors.Is(err, errUnusable) && !errors.Is(err, errWrongCall),
		kind == blocksMissing, offline && op.Op == "dial":
		return false
	case kind == tooMuch, kind == unclear:
		return n.limits.batchRefused(size, 0)
	case kind == unanswered:
		n.limits.batchRefused(size, 1)
		return false
	}
	if _, single := n.exchange(ctx, first); single != nil && !refused(single) {
		return false
	}
	return n.limits.batchRefused(size, 1)
}
