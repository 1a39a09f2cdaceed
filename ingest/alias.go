package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/chainlog"
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

// obeyAlias executes a command about aliases. ended is false if it continues at the next step.
func (s *session) obeyAlias(ctx context.Context, c command) (o outcome, ended bool, err error) {
	var a Alias
	if err := json.Unmarshal([]byte(c.argument), &a); err != nil {
		return refused("the command cannot be read: %v", err), true, nil
	}
	switch have := s.state.coverageOf(c.vault); {
	case have == nil:
		return refused("the log of chain %d has no vault %s", s.ingest.config.ID, c.vault), true, nil
	case have.removed:
		return refused("vault %s was removed: bring it back with `navlog vault restore`", c.vault), true, nil
	case c.kind == registry.SendEarlier:
		return s.sendEarlier(ctx, c.vault, a.Partner)
	}
	o, err = s.alias(ctx, c, a)
	return o, true, err
}

// alias appends a record of the vault with an alias set or removed. To repeat it changes nothing.
func (s *session) alias(ctx context.Context, c command, a Alias) (o outcome, err error) {
	known, value := s.state.records[c.vault], mapping.AttributionText(a.Value)
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
	case !s.state.mapped.Of(c.vault).Description.Attributes():
		return refused("the mapping of vault %s has no `attribution`, so no value of its logs needs an alias", c.vault), nil
	case len(known.GetAliases()) >= mapping.MaxAliases:
		return refused("vault %s has %d aliases, and can have no more", c.vault, mapping.MaxAliases), nil
	}
	fact, next := vaultFact(mapping.WithAlias(known, a.Value, a.Partner)), *s.state.coverageOf(c.vault)
	next.introduced = fact
	if err := s.commit(ctx, &change{units: [][]*event.Record{{fact}}, covered: []coverage{next}}); err != nil {
		return o, err
	}
	return done("seq %d: webhooks use it from now on, and responses with the next generation", fact.GetSeq()), nil
}

const (
	// earlierAtOnce is how many records are read between two steps of the vaults: about 100 ms of work.
	earlierAtOnce = 20_000
	// earlierInOne is how many referrals one transaction writes.
	earlierInOne = 1000
)

// earlier reads the log from its start for the referrals of a partner, according to the current aliases. Before an
// alias was set, the logs that it matches named no partner when their referrals were due.
type earlier struct {
	vault   common.Address
	partner uint32
	record  uint64 // seq of the vault's newest record, whose mapping applies
	reader  *chainlog.Reader
	seq     uint64 // the log was read up to it
	unit    []chainlog.Entry
	found   map[uint64]referral // live ones, by seq
}

func (e *earlier) close() {
	if e != nil {
		e.reader.Close()
	}
}

// sendEarlier reads the next part of the log, and writes the referrals once the whole log was read. It writes only
// those of blocks that the referral topics have passed: the others are written when their blocks are deep enough. A
// referral that is written twice has the same event id, so neither a crash before the command ended nor a second
// command changes anything.
func (s *session) sendEarlier(ctx context.Context, vault common.Address, partner uint32) (o outcome, ended bool, err error) {
	record := s.state.coverageOf(vault).record
	if e := s.earlier; e != nil && (e.vault != vault || e.partner != partner || e.record != record) {
		s.endEarlier()
	}
	if s.earlier == nil {
		reader, err := chainlog.NewReader(s.ingest.config.ID, chainlog.Position{}, s.ingest.kafka.Options()...)
		if err != nil {
			return o, false, err
		}
		s.earlier = &earlier{vault: vault, partner: partner, record: record, reader: reader, found: map[uint64]referral{}}
	}
	e := s.earlier
	if e.seq < s.state.seq {
		if err := e.read(ctx, s.state.mapped, s.ingest.earlierAtOnce); err != nil {
			s.endEarlier()
			return o, false, fmt.Errorf("read the log for the earlier referrals of partner %d: %w", partner, err)
		}
	}
	if e.seq < s.state.seq {
		return o, false, nil
	}
	s.endEarlier()
	var all []referral
	for _, seq := range slices.Sorted(maps.Keys(e.found)) {
		if r := e.found[seq]; r.GetLog().GetBlockNumber() <= s.state.told {
			all = append(all, r)
		}
	}
	for part := range slices.Chunk(all, earlierInOne) {
		if err := s.commit(ctx, &change{earlier: part}); err != nil {
			return o, false, err
		}
	}
	return done("%d referrals of vault %s were written for partner %d: dispatch sends those that it has not sent before", len(all), vault, partner), true, nil
}

func (s *session) endEarlier() {
	s.earlier.close()
	s.earlier = nil
}

// read reads the next piece of at most so many records.
func (e *earlier) read(ctx context.Context, mapped *mapping.Vaults, most int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	entries, err := e.reader.Poll(ctx, most)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		e.seq = entry.GetSeq()
		if entry.GetRetracts() != 0 {
			delete(e.found, entry.GetRetracts())
		} else if l := entry.GetLog(); l != nil && mapping.VaultOf(l) == e.vault {
			e.unit = append(e.unit, entry)
		}
		if !entry.GetBoundary() {
			continue
		}
		logs := make([]*event.Log, len(e.unit))
		for i, r := range e.unit {
			logs[i] = r.GetLog()
		}
		for i, a := range attributions(mapped, logs) {
			if a != nil && a.partner == e.partner {
				e.found[e.unit[i].GetSeq()] = referral{e.unit[i].Record, a, e.unit[i].Parent}
			}
		}
		e.unit = e.unit[:0]
	}
	return nil
}
