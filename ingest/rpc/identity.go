package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// RefusedError means that the configuration, the chain and the log contradict each other. A retry does not help.
type RefusedError struct{ reason error }

func (e *RefusedError) Error() string { return e.reason.Error() }
func (e *RefusedError) Unwrap() error { return e.reason }

// Refuse returns a RefusedError.
func Refuse(format string, a ...any) error { return &RefusedError{fmt.Errorf(format, a...)} }

// Refused reports whether an error is a RefusedError.
func Refused(err error) bool {
	_, refused := errors.AsType[*RefusedError](err)
	return refused
}

type identity struct {
	chainID uint64
	genesis common.Hash
}

func (n *Node) identity(ctx context.Context) (identity, error) {
	id, err := n.chainID(ctx)
	if err != nil {
		return identity{}, err
	}
	zero, err := n.ByNumber(ctx, 0)
	if isAnswer(err) {
		err = fmt.Errorf("the endpoint does not return block 0, which identifies its chain, so it cannot be used: %w", err)
	}
	if err != nil {
		return identity{chainID: id}, err
	}
	return identity{id, zero.Hash}, nil
}

// checkWithin is how long, at the start, the other endpoints may take after the first one has responded.
const checkWithin = 3 * time.Second

// checkAll reads once from all endpoints which chain they serve, and fails if one of them serves the wrong one. An
// endpoint that does not respond in time counts as failed.
func (p *Pool) checkAll(ctx context.Context) error {
	if p.checked.Load() {
		return nil
	}
	ids, errs := make([]identity, len(p.all)), make([]error, len(p.all))
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	var asking sync.WaitGroup
	for i, n := range p.all {
		asking.Go(func() {
			if ids[i], errs[i] = n.identity(bounded); errs[i] == nil {
				time.AfterFunc(checkWithin, cancel)
				_, _ = n.Latest(bounded) // the heads of all endpoints are compared from the start
			} else if bounded.Err() != nil && ctx.Err() == nil {
				n.health.set(func(h *health) { h.fail(h.now(), h.now(), errs[i]) })
			}
		})
	}
	asking.Wait()
	var faults, wrong []error
	for i, n := range p.all {
		err := p.compareIdentity(n, ids[i], errs[i])
		if _, is := errors.AsType[*contracts.OtherChainError](err); is {
			wrong = append(wrong, err)
		} else if err != nil {
			faults = append(faults, err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(wrong) > 0:
		return Refuse("%w", errors.Join(wrong...))
	case len(faults) == len(p.all):
		return noneAnswers(faults)
	}
	p.checked.Store(true)
	return nil
}

// compareIdentity compares the chain of an endpoint, as far as it is known, with the configured one and with that of
// the other endpoints.
func (p *Pool) compareIdentity(n *Node, id identity, fault error) error {
	if fault != nil && (id.chainID == 0 || id.chainID == p.chainID) {
		return fault
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.all, n)
	wrong := ""
	switch {
	case id.chainID != p.chainID:
		wrong = fmt.Sprintf("chain.rpc[%d] (%s) serves chain %d, but chain.id is %d: correct one of them", i, n.Name,
			id.chainID, p.chainID)
	case p.genesis != nil && id.genesis != *p.genesis:
		wrong = fmt.Sprintf("chain.rpc[%d] (%s) serves a chain with genesis %s, but the other endpoints serve one with "+
			"genesis %s: remove the wrong one", i, n.Name, id.genesis, p.genesis)
	case p.genesis == nil:
		p.genesis = &id.genesis
	}
	var before string
	n.health.set(func(h *health) {
		before, h.wrong, h.identified = h.wrong, wrong, time.Time{}
		if wrong == "" {
			h.identified = h.now()
		}
	})
	if wrong != "" && before == "" && p.checked.Load() {
		p.log.Error("endpoint serves another chain, no longer using it", "endpoint", n.Name, "error", wrong)
	}
	if wrong != "" {
		return &contracts.OtherChainError{Text: wrong}
	}
	return nil
}

func (p *Pool) identified(ctx context.Context, n *Node) error {
	if !n.health.snapshot().identified.IsZero() {
		return nil
	}
	return p.Identify(ctx, n)
}

// Identify verifies the chain of an endpoint. If every endpoint serves another chain, it returns a RefusedError, since
// waiting would not help.
func (p *Pool) Identify(ctx context.Context, n *Node) error {
	id, err := n.identity(ctx)
	err = p.compareIdentity(n, id, err)
	if mistake, is := errors.AsType[*contracts.OtherChainError](err); is && p.Serving() == 0 {
		return Refuse("no endpoint of chain.rpc is left that serves the chain: %w", mistake)
	}
	return err
}
