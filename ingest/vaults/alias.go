package vaults

import (
	"context"
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// Alias is the argument of commands about aliases: SetAlias has both fields, RemoveAlias the value, SendEarlier the
// partner.
type Alias struct {
	Value   common.Hash
	Partner uint32
}

// Encode returns the alias as the argument of a command.
func (a Alias) Encode() (string, error) {
	argument, err := json.Marshal(a)
	return string(argument), err
}

// executeAlias executes a command about aliases. ended is false if it continues at the next step.
func (r *Registrar) executeAlias(ctx context.Context, c command) (o Outcome, ended bool, err error) {
	var a Alias
	if err := json.Unmarshal(c.argument, &a); err != nil {
		return refused("the command cannot be read: %v", err), true, nil
	}
	switch have := r.writer.State.CoverageOf(c.vault); {
	case have == nil:
		return refused("the log of chain %d has no vault %s", r.writer.ChainID, c.vault), true, nil
	case have.Removed:
		return refused("vault %s was removed: restore it with `navlog vault restore`", c.vault), true, nil
	case c.kind == registry.SendEarlier:
		n, ended, err := r.writer.SendEarlier(ctx, c.vault, a.Partner)
		return done("%d referrals of vault %s were written for partner %d: dispatch sends those that it has not sent before",
			n, c.vault, a.Partner), ended, err
	}
	o, err = r.alias(ctx, c, a)
	return o, true, err
}

// alias appends a record of the vault with an alias set or removed. To repeat it changes nothing.
func (r *Registrar) alias(ctx context.Context, c command, a Alias) (o Outcome, err error) {
	known, value := r.writer.State.Records[c.vault], mapping.AttributionText(a.Value)
	partner := mapping.AliasOf(known, a.Value)
	switch {
	case c.kind == registry.RemoveAlias && partner == 0:
		return done("%s names no partner at vault %s", value, c.vault), nil
	case c.kind == registry.RemoveAlias:
		a.Partner = 0
	case a.Partner == 0 || a.Value == (common.Hash{}):
		return refused("the command names no partner or no value"), nil
	case partner == a.Partner:
		return done("%s names partner %d at vault %s already", value, partner, c.vault), nil
	case partner != 0:
		return refused("%s names partner %d at vault %s: remove that alias first", value, partner, c.vault), nil
	case !r.writer.State.Mapped.Of(c.vault).Description.Attributes():
		return refused("the mapping of vault %s has no `attribution`, so no value of its logs needs an alias", c.vault), nil
	case len(known.GetAliases()) >= mapping.MaxAliases:
		return refused("vault %s has %d aliases, and can have no more", c.vault, mapping.MaxAliases), nil
	}
	fact, next := writer.VaultFact(mapping.WithAlias(known, a.Value, a.Partner)), *r.writer.State.CoverageOf(c.vault)
	next.NewRecord = fact
	if err := r.writer.Commit(ctx,
		&writer.Change{Units: [][]*event.Record{{fact}}, Covered: []writer.Coverage{next}}); err != nil {
		return o, err
	}
	return done("seq %d: webhooks use it from now on, and responses with the next generation", fact.GetSeq()), nil
}
