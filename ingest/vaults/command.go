package vaults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// command is an operator's command about a vault.
type command struct {
	id       int64
	kind     string // registry.RemoveVault or one of the kinds after it
	vault    common.Address
	argument []byte // the vault to add (Config.Encode), or the alias (Alias.Encode)
}

// Outcome is the result of a command: registry.CommandDone or CommandRefused, and a sentence.
type Outcome struct{ Result, Detail string }

// Commands is the queue of operators' commands for ingest, in order: that of *db.Queries, in PostgreSQL.
type Commands interface {
	// PendingVaultCommands returns the commands of a chain without an outcome.
	PendingVaultCommands(ctx context.Context, chainID int64) ([]db.PendingVaultCommandsRow, error)
	FinishVaultCommand(ctx context.Context, outcome db.FinishVaultCommandParams) error
}

const (
	// pollInterval is the pause between reads of the queue.
	pollInterval = time.Second
	pollTimeout  = 2 * time.Second
)

// inbox passes commands to the session, so that the session never waits for PostgreSQL, and their outcomes back. If an
// outcome is lost, the command runs again, which changes nothing more.
type inbox struct {
	from    Commands
	chainID uint64
	log     *slog.Logger

	mu      sync.Mutex
	waiting []command
	ended   map[int64]Outcome // not written yet
	failing bool
}

func (b *inbox) run(ctx context.Context) {
	for rpc.Sleep(ctx, pollInterval) == nil {
		b.poll(ctx)
	}
	b.mu.Lock()
	left := len(b.ended)
	b.mu.Unlock()
	if left > 0 {
		b.poll(context.WithoutCancel(ctx))
	}
}

func (b *inbox) poll(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	err := b.exchange(limited)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !b.failing { // once, not every second
		b.log.Warn("commands about vaults not readable, the log's vaults stay", "error", err)
	}
	b.failing = err != nil
}

func (b *inbox) exchange(ctx context.Context) error {
	b.mu.Lock()
	ended := maps.Clone(b.ended)
	b.mu.Unlock()
	for id, o := range ended {
		result := db.FinishVaultCommandParams{ID: id, Outcome: o.Result, Detail: o.Detail}
		if err := b.from.FinishVaultCommand(ctx, result); err != nil {
			return fmt.Errorf("write the outcome of command %d: %w", id, err)
		}
	}
	pending, err := b.from.PendingVaultCommands(ctx, int64(b.chainID))
	if err != nil {
		return fmt.Errorf("read the commands about vaults: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range ended {
		delete(b.ended, id)
	}
	b.waiting = nil
	for _, c := range pending {
		if _, known := b.ended[c.ID]; !known { // it ended while they were read
			b.waiting = append(b.waiting, command{c.ID, c.Kind, common.BytesToAddress(c.Vault), c.Argument})
		}
	}
	return nil
}

func (b *inbox) next() (c command, ok bool) {
	if b == nil {
		return c, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return c, false
	}
	return b.waiting[0], true
}

// end notes the outcome of the oldest command.
func (b *inbox) end(c command, o Outcome) {
	b.log.Info("command about a vault", "command", c.id, "kind", c.kind, "vault", c.vault, "outcome", o.Result, "detail",
		o.Detail)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[c.id] = o
	if len(b.waiting) > 0 && b.waiting[0].id == c.id {
		b.waiting = b.waiting[1:]
	}
}

// Receive reads the operators' commands until ctx ends or stop is called, which returns when the last outcomes are
// written. It returns after the first read, because a command may make space for a vault of chain.vaults.
func (r *Registrar) Receive(ctx context.Context, from Commands) (stop func()) {
	r.inbox = &inbox{from: from, chainID: r.writer.ChainID, log: r.log, ended: map[int64]Outcome{}}
	r.inbox.poll(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var stopped sync.WaitGroup
	stopped.Go(func() { r.inbox.run(ctx) })
	return func() { cancel(); stopped.Wait() }
}

// Execute executes the oldest pending command, and reports whether its effect is in the log. One that reads the log
// does so in parts, between the steps of the vaults, and is pending meanwhile. One that calls a vault does so at the
// end of tip, and is refused if these calls keep failing although enough endpoints are up.
func (r *Registrar) Execute(ctx context.Context, n *rpc.Node, tip *rpc.Header) (did, pending bool, err error) {
	c, ok := r.inbox.next()
	if !ok {
		return false, false, nil
	}
	var o Outcome
	ended, calls := true, c.kind == registry.RestoreVault || c.kind == registry.AddVault
	able := r.nodes.Ready() >= r.nodes.Agreement // otherwise its calls fail because of an outage or a rate limit
	switch c.kind {
	case registry.RemoveVault:
		o, err = r.remove(ctx, c.vault)
	case registry.RestoreVault:
		o, err = r.restoreVault(ctx, n, tip, c.vault)
	case registry.AddVault:
		o, err = r.add(ctx, n, tip, c)
	case registry.SetAlias, registry.RemoveAlias, registry.SendEarlier:
		o, ended, err = r.executeAlias(ctx, c)
	default:
		o = refused("this navlog does not know the command %q: start a newer version", c.kind)
	}
	if err != nil && calls && able && ctx.Err() == nil && !errors.Is(err, writer.ErrCommit) && r.countFailure(c) {
		o, err = refused("the nodes failed in %d attempts: %v; run the command again when they respond", maxAttempts, err),
			nil
	}
	if err == nil && ended {
		clear(r.responses)
		r.inbox.end(c, o)
	}
	return ended, !ended, err
}

// maxAttempts is how many attempts of a command may fail because of the nodes before it is refused, so that it does
// not block the commands behind it forever: about a minute.
const maxAttempts = 10

func (r *Registrar) countFailure(c command) bool {
	if r.failing.command != c.id {
		r.failing.command, r.failing.attempts = c.id, 0
	}
	r.failing.attempts++
	return r.failing.attempts >= maxAttempts
}

func refused(format string, a ...any) Outcome {
	return Outcome{registry.CommandRefused, fmt.Sprintf(format, a...)}
}

func done(format string, a ...any) Outcome {
	return Outcome{registry.CommandDone, fmt.Sprintf(format, a...)}
}

// remove appends the record that a vault was removed. Its history stays in the log.
func (r *Registrar) remove(ctx context.Context, address common.Address) (o Outcome, err error) {
	have := r.writer.State.CoverageOf(address)
	switch {
	case have == nil:
		return refused("the log of chain %d has no vault %s", r.writer.ChainID, address), nil
	case have.Removed:
		return done("vault %s was removed before", address), nil
	case len(r.selected) == 1:
		return refused("vault %s is the only one: add another one to chain.vaults first", address), nil
	}
	gone := *have
	gone.Removed = true
	fact := writer.VaultFact(&event.Vault{Address: address[:], StartBlock: gone.Start, Removed: true})
	if err := r.writer.Commit(ctx,
		&writer.Change{Units: [][]*event.Record{{fact}}, Covered: []writer.Coverage{gone}}); err != nil {
		return o, err
	}
	r.SelectVaults()
	return done("seq %d: the vault is removed from responses with the next generation, and is covered up to block %d",
		fact.GetSeq(), gone.To), nil
}

// add appends the record of a vault, which need not be in chain.vaults. It is read like a late vault.
func (r *Registrar) add(ctx context.Context, n *rpc.Node, tip *rpc.Header, c command) (o Outcome, err error) {
	v, err := decodeVault(c.argument)
	if err != nil {
		return refused("the command cannot be read: %v", err), nil
	}
	have, others := r.writer.State.CoverageOf(v.Address), len(r.selected)
	// By chain.vaults: Describe would change the vault back at once, or the next start refuse its start block.
	contradicted := false
	if i := slices.IndexFunc(r.Set, func(s vault) bool { return s.Address == v.Address }); i >= 0 {
		if have == nil {
			others-- // it is one of those selected
			v.Name = cmp.Or(v.Name, r.Set[i].Name)
		}
		contradicted = !reflect.DeepEqual(v, r.Set[i])
	}
	if have != nil {
		r.completeFromLog(&v, have)
	}
	switch {
	case v.Address != c.vault:
		return refused("the command is about vault %s and describes vault %s", c.vault, v.Address), nil
	case have != nil && have.Removed:
		return refused("vault %s was removed: restore it with `navlog vault restore`", v.Address), nil
	case have != nil && !sameSources(v.Sources, r.sourcesOf(v.Address)):
		return refused("vault %s is in the log with other sources", v.Address), nil
	case have != nil && v.Start < have.Start:
		return refused("the log is append-only and holds vault %s from block %d on: index the chain into a new log to read "+
			"it from block %d", v.Address, have.Start, v.Start), nil
	case have != nil && !r.changed(v) && v.Name == have.Name:
		return done("vault %s is in the log already, from block %d on", v.Address, have.Start), nil
	case contradicted:
		return refused("vault %s is in chain.vaults of ingest, which describes it differently: change it there",
			v.Address), nil
	case have == nil && others >= Max:
		return refused("%d vaults are indexed, and there can be no more: remove one first", Max), nil
	}
	missing, err := v.withoutCode(ctx, n, tip)
	if err != nil {
		return o, err
	}
	if len(missing) > 0 {
		return refused("%s %s has no code on chain %d", missing[0].Role, missing[0].Address, r.writer.ChainID), nil
	}
	return r.appendByCommand(ctx, n, tip, v, func(have *writer.Coverage) Outcome {
		return done("seq %d: vault %s is read from block %d, and is in responses with the next generation",
			r.writer.State.Seq, v.Address, have.Start)
	})
}

// completeFromLog completes the description of a vault of the log: what a command omits stays as it is in the log.
func (r *Registrar) completeFromLog(v *vault, have *writer.Coverage) {
	v.Name = cmp.Or(v.Name, have.Name)
	known := r.writer.State.Records[v.Address]
	token := known.GetAsset()
	if token == nil {
		return
	}
	v.Symbol = cmp.Or(v.Symbol, known.GetSymbol())
	if v.Decimals < 0 {
		v.Decimals = int(known.GetDecimals())
	}
	asset := common.BytesToAddress(token.GetAddress())
	if v.Asset != nil && *v.Asset != asset {
		return // its symbol and decimals are not those of the log's asset
	}
	v.Asset, v.AssetSymbol = &asset, cmp.Or(v.AssetSymbol, token.GetSymbol())
	if v.AssetDecimals < 0 {
		v.AssetDecimals = int(token.GetDecimals())
	}
}

// restoreVault appends the record that restores a removed vault, which continues after the block up to which it is
// covered.
func (r *Registrar) restoreVault(
	ctx context.Context, n *rpc.Node, tip *rpc.Header, address common.Address,
) (o Outcome, err error) {
	have := r.writer.State.CoverageOf(address)
	switch {
	case have == nil:
		return refused("the log of chain %d has no vault %s: add it to chain.vaults", r.writer.ChainID, address), nil
	case !have.Removed:
		return done("vault %s was not removed", address), nil
	case len(r.selected) >= Max:
		return refused("%d vaults are indexed, and there can be no more: remove one first", Max), nil
	}
	back := vault{address, have.Start, have.Name, nil}
	for _, v := range r.Set {
		if v.Address == address {
			back.Name = v.Name
		}
	}
	return r.appendByCommand(ctx, n, tip, back, func(have *writer.Coverage) Outcome {
		return done("seq %d: vault %s continues from block %d", r.writer.State.Seq, address, have.To+1)
	})
}

func (r *Registrar) appendByCommand(
	ctx context.Context, n *rpc.Node, tip *rpc.Header, v vault, outcome func(*writer.Coverage) Outcome,
) (Outcome, error) {
	err := r.appendRecords(ctx, n, tip, []vault{v})
	switch {
	case rpc.Refused(err) && !errors.Is(err, writer.ErrCommit): // which ends the session, whatever it wraps
		return refused("%v", err), nil
	case err != nil:
		return Outcome{}, err
	}
	return outcome(r.writer.State.CoverageOf(v.Address)), nil
}
