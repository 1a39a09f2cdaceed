// Package devchain generates activity on a development chain: Deploy creates the reference contracts there, and a
// Scenario endlessly deposits, values, sweeps, requests, settles, claims, cancels and expires.
//
// The chain is its only memory. Every step reads from the vaults what can be done, so a scenario continues where
// another one stopped, and also after a reorganisation. On a chain without deposits it begins with fixed actions that
// contains every kind of event; after that it draws steps from a table of weights. The draws follow from the seed and
// the block at which the scenario begins, so the same seed on the same chain takes the same steps.
//
// It needs anvil: its accounts are derived from public names and get their gas from anvil_setBalance. Never use it on a
// chain that matters.
package devchain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// userCount is the number of depositors, several of whom use more than one vault.
const userCount = 16

// failuresInARow ends Run: a single failed step is normal on a chain that is being reorganised, but that many mean that
// the chain is down.
const failuresInARow = 10

// Scenario generates traffic. Its methods must not be called concurrently.
type Scenario struct {
	// BlockTime is the time from block to block in Steps, in whole seconds; 0 is a second.
	BlockTime time.Duration

	rpcURL    string
	contracts *Contracts
	seed      int64
	partners  []uint32
	log       *slog.Logger
	users     []account
	byAddress map[common.Address]account

	// set by connect
	chain        *chain
	vaults       []*vault
	router       *Contract
	rng          *rand.Rand
	firstActions []scripted
}

// New creates a scenario for deployed contracts, which does nothing until Run or Steps. Deposits and requests are
// attributed to the partners, or to none if there are no partners. The seed determines what happens.
func New(rpcURL string, contracts *Contracts, seed int64, partners []uint32, log *slog.Logger) *Scenario {
	s := &Scenario{rpcURL: rpcURL, contracts: contracts, seed: seed, partners: partners, log: log,
		byAddress: map[common.Address]account{}}
	for i := range userCount {
		u := newAccount(fmt.Sprintf("user %d", i))
		s.users = append(s.users, u)
		s.byAddress[u.address] = u
	}
	return s
}

// Run takes one step every interval until ctx is done, and then returns nil. Each transaction is mined at once, even if
// the node mines at intervals or on demand. The chain's time is not changed. A step that fails is logged and another
// one is taken; ten failures in a row end the run with the last error.
func (s *Scenario) Run(ctx context.Context, interval time.Duration) error {
	if err := s.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return contracts.Discreet(err, s.rpcURL)
	}
	s.chain.blockTime = 0
	return repeat(ctx, interval, "scenario",
		func(ctx context.Context) error { return contracts.Discreet(s.step(ctx), s.rpcURL) }, s.log)
}

// repeat takes a step every interval until ctx is done, and then returns nil. After failuresInARow it returns the last
// error.
func repeat(ctx context.Context, interval time.Duration, name string, step func(context.Context) error,
	log *slog.Logger) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
			continue
		}
		if failures++; failures == failuresInARow {
			return fmt.Errorf("%d steps of the %s failed in a row, the last one was: %w", failures, name, err)
		}
		log.Warn("a step failed, continuing", "of", name, "error", err)
	}
}

// Steps takes n steps, each mined when it returns, as fast as the node can. It controls the chain's clock: every block
// is BlockTime after its parent, and if a request has to expire, the time jumps there. So the chain's time soon runs
// ahead of the wall clock, and the steps follow only from the seed. The first 60 steps on a new chain contain every
// kind of event.
func (s *Scenario) Steps(ctx context.Context, n int) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.chain.blockTime = max(1, uint64(s.BlockTime/time.Second))
	for range n {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect binds the contracts, once, and decides with which step to begin.
func (s *Scenario) connect(ctx context.Context) error {
	if s.chain != nil {
		return nil
	}
	if len(s.contracts.Vaults) == 0 {
		return errors.New("the scenario has no vaults: deploy the contracts first")
	}
	c, err := dial(ctx, s.rpcURL)
	if err != nil {
		return err
	}
	if c.id.Uint64() != s.contracts.ChainID {
		c.Close()
		return fmt.Errorf("the contracts are on chain %d, but the node serves chain %s: deploy again, or use the right node",
			s.contracts.ChainID, c.id)
	}
	if err := s.bind(ctx, c); err != nil {
		c.Close()
		return err
	}
	s.chain = c
	return nil
}

func (s *Scenario) bind(ctx context.Context, c *chain) error {
	s.vaults = nil
	deposits := new(big.Int)
	for _, v := range s.contracts.Vaults {
		bound, err := bindVault(ctx, c, v)
		if err != nil {
			return err
		}
		count, err := read[*big.Int](ctx, bound.Contract, "depositCount")
		if err != nil {
			return err
		}
		deposits.Add(deposits, count)
		s.vaults = append(s.vaults, bound)
	}
	s.router = At(c, "ReferenceDepositRouter", s.contracts.Router)
	head, err := c.BlockNumber(ctx)
	if err != nil {
		return fmt.Errorf("read the number of the newest block: %w", err)
	}
	s.rng = rand.New(rand.NewPCG(uint64(s.seed), head))
	s.firstActions = nil
	if deposits.Sign() == 0 {
		s.firstActions = firstActions
	}
	return nil
}

// step takes the next of the first actions or, if there is none left or cannot be taken now, one drawn from the table.
func (s *Scenario) step(ctx context.Context) error {
	if len(s.firstActions) > 0 {
		next := s.firstActions[0]
		s.firstActions = s.firstActions[1:]
		if done, err := s.take(ctx, next.action, s.vaults[next.vault%len(s.vaults)]); done || err != nil {
			return err
		}
	}
	for range 100 {
		if done, err := s.take(ctx, draw(s.rng, table, func(a action) int { return a.weight }),
			s.vaults[s.rng.IntN(len(s.vaults))]); done || err != nil {
			return err
		}
	}
	return errors.New("no step of the scenario can be taken, although a deposit always should")
}

func (s *Scenario) take(ctx context.Context, a action, v *vault) (done bool, err error) {
	done, err = a.do(s, ctx, v)
	if err != nil {
		return false, fmt.Errorf("%s in the vault %s (%s): %w", a.name, v.Symbol, v.Address, err)
	}
	if done {
		s.log.Debug("scenario step", "step", a.name, "vault", v.Symbol)
	}
	return done, nil
}

// draw picks an element of a table with the probability of its weight.
func draw[T any](rng *rand.Rand, table []T, weight func(T) int) T {
	total := 0
	for _, x := range table {
		total += weight(x)
	}
	at := rng.IntN(total)
	for _, x := range table {
		if at -= weight(x); at < 0 {
			return x
		}
	}
	panic("not reached: the weights add up to total")
}
