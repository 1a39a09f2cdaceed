package partner

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

//go:embed statement_*.sql
var files embed.FS

// Statements makes statements. Without a key it makes none.
type Statements struct {
	Key  ed25519.PrivateKey
	Pool *pgxpool.Pool // contains the keys
	// Depth is the minimum number of blocks from a statement's block to the newest one.
	Depth uint64
}

func (s *Statements) public() ed25519.PublicKey { return s.Key.Public().(ed25519.PublicKey) }

type keysJSON struct {
	Algorithm string    `json:"algorithm"`
	Current   [][]byte  `json:"publicKeys"`
	Keys      []keyJSON `json:"keys"`
}

type keyJSON struct {
	PublicKey []byte  `json:"publicKey"`
	Since     string  `json:"since"`
	RetiredAt *string `json:"retiredAt"`
}

// Keys lists the public keys of statements: the one that signs, and the retired ones.
func (s *Statements) Keys(r *serve.Request) (*serve.Answer, error) {
	out := keysJSON{Algorithm: "Ed25519", Current: [][]byte{}, Keys: []keyJSON{}}
	if s.Key != nil {
		switch err := registry.UseStatementKey(r.Context, s.Pool, s.public()); {
		case err == nil:
			out.Current = append(out.Current, s.public())
		case !errors.Is(err, registry.ErrStatementKeyRetired):
			return nil, serve.Unavailable("The keys cannot be listed at the moment.", err)
		}
	}
	known, err := db.New(s.Pool).StatementKeys(r.Context)
	if err != nil {
		return nil, serve.Unavailable("The keys cannot be listed at the moment.", err)
	}
	for _, k := range known {
		out.Keys = append(out.Keys, keyJSON{k.PublicKey, serve.Millis(k.Since), serve.MillisOrNull(k.RetiredAt)})
	}
	return &serve.Answer{Data: out}, nil
}

// Get makes the statement of the requesting partner about a time range.
func (s *Statements) Get(r *serve.Request) (*serve.Answer, error) {
	span := r.Params.Span()
	for _, end := range []struct {
		name string
		at   int64
	}{{"from", span.From}, {"to", span.To}} {
		switch {
		case r.Params.Get(end.name) == "":
			r.Params.Fault(end.name, "must be given: a statement covers a time range")
		case end.at < 0:
			r.Params.Fault(end.name, "must not be before 1970")
		}
	}
	if r.Params.Err() == nil && span.From > span.To { // both are within one second
		r.Params.Fault("from", "must not be after "+serve.Time(uint64(span.To))+", the last whole second up to to: block "+
			"times are whole seconds")
	}
	if s.Key == nil {
		return nil, serve.NotFound("Statements are not available here: the operator has configured no signing key.")
	}
	answer := func(ctx context.Context, p *ask.Pin, ingest *registry.ProgramStatus) (*serve.Answer, error) {
		if err := registry.UseStatementKey(ctx, s.Pool, s.public()); errors.Is(err, registry.ErrStatementKeyRetired) {
			return nil, serve.Unavailable("Statements are not signed here: the key of this instance is retired.", err)
		} else if err != nil {
			return nil, serve.Unavailable("The statement's key cannot be listed at the moment.", err)
		}
		b, err := beginStatement(ctx, r, p, r.Partner.ID, span, ingest)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("statement-%d-%d-%d-%d.json", p.ChainID, r.Partner.ID, span.From, span.To)
		write := func(ctx context.Context, out io.Writer) error { return b.write(ctx, out, s.Key) }
		return &serve.Answer{Name: name, Stream: write, Input: string(s.public())}, nil
	}
	return r.PinnedToFinal(s.Depth, answer)
}

// place is the position of a time range in the log: see statement_place.sql.
type place struct {
	Latest uint32      `ch:"latest"`
	Begins uint64      `ch:"begins"`
	Anchor uint64      `ch:"anchor"` // 0: the log does not reach beyond the range yet
	Number uint64      `ch:"number"`
	Hash   common.Hash `ch:"hash"`
	Time   uint32      `ch:"time"`
}

type ofRange struct {
	From int64 `ask:"from"`
	To   int64 `ask:"to"`
}

type ofLeft struct {
	Left uint64 `ask:"left"`
}

var (
	places = ask.New[ofRange, place](state.SQL(files, "statement_place"))
	lefts  = ask.New[ofLeft, lastBlock](state.SQL(files, "statement_left"))
)

type building struct {
	request *serve.Request
	pin     *ask.Pin
	place   place
	span    serve.Span
	header  statement.Header
	vaults  []state.Vault
	streams []*statementStream // nil: nothing is read yet
}

func beginStatement(ctx context.Context, r *serve.Request, p *ask.Pin, partner uint32, span serve.Span,
	ingest *registry.ProgramStatus) (*building, error) {
	b := &building{request: r, pin: p, span: span}
	var err error
	if b.place, _, err = places.One(ctx, p, ofRange{span.From, span.To}); err != nil {
		return nil, err
	}
	switch {
	case b.place.Latest == 0:
		return nil, serve.Unavailable("No final block is indexed yet.", nil)
	case b.place.Anchor == 0: // a block may have the same time as the previous one
		latest := serve.Time(uint64(b.place.Latest))
		return nil, serve.InvalidParameter(serve.Fault{Field: "to",
			Reason: "must be before " + latest + ", the time of the newest block that statements are made of"})
	}
	if err := b.choose(ctx); err != nil {
		return nil, err
	}
	if err := b.covered(ingest); err != nil {
		return nil, err
	}
	b.header = statement.Header{
		ChainID: p.ChainID, PartnerID: partner, From: webhook.FormatTime(uint64(span.From)),
		To:     webhook.FormatTime(uint64(span.To)),
		Vaults: []statement.Vault{},
		Block: statement.Block{Number: serve.Decimal(b.place.Number), Hash: b.place.Hash.Hex(),
			Timestamp: webhook.FormatTime(uint64(b.place.Time))},
	}
	for _, v := range b.vaults {
		listed := statement.Vault{Address: v.Written, StartBlock: serve.Decimal(v.StartBlock)}
		listed.Mapped(v.Mapped, partner)
		b.header.Vaults = append(b.header.Vaults, listed)
	}
	return b, nil
}

// choose finds the vaults of the statement: those that the log had at its first record after the range. A vault that
// left before the range is excluded, and one that left after it is included. If one left within the range, the
// partner must request two statements, because a statement lists vaults from a start block, without an end.
func (b *building) choose(ctx context.Context) error {
	vaults, err := ask.VaultsAt(ctx, b.pin, b.place.Anchor)
	if err != nil {
		return err
	}
	for _, v := range vaults {
		if v.Removed && v.Seq < b.place.Begins {
			continue
		}
		if v.Removed {
			last, ok, err := lefts.One(ctx, b.pin, ofLeft{v.Seq})
			if err != nil {
				return err
			}
			if !ok || last.Block+1 < b.place.Number { // there may be further blocks of the range in between
				return b.divided(ctx, v, last)
			}
		}
		switch {
		case !v.Absent:
		case b.pin.Left(v.Address):
			return serve.InvalidParameter(serve.Fault{Field: "from", Reason: fmt.Sprintf(
				"is of a range whose statement cannot be made any more: vault %s has left navlog since, and the read model"+
					" has no events of it; a statement of this range that was made before stays valid", v.Written)})
		default:
			return serve.Unavailable(fmt.Sprintf(
				"The read model has no events of vault %s yet: the next one, which is being built, has them.", v.Written), nil)
		}
		b.vaults = append(b.vaults, v)
	}
	return nil
}

// divided returns the error for a range in which a vault left after a block. The first of two statements can include
// this block only if the log has the next one: when ingest reads ranges of old blocks, unknown ones may have its time.
func (b *building) divided(ctx context.Context, v state.Vault, last lastBlock) error {
	next, _, err := places.One(ctx, b.pin, ofRange{b.span.From, int64(last.Time)})
	if err != nil {
		return err
	}
	before, why := "before or at", ""
	if last.Block+1 < next.Number {
		before, why = "before", " and the log does not have the next block,"
	}
	return serve.InvalidParameter(serve.Fault{Field: "to", Reason: fmt.Sprintf(
		"must be %s %s, or from after it: vault %s left navlog then, after block %d,%s so ask for two statements", before,
		serve.Time(uint64(last.Time)), v.Written, last.Block, why)})
}

type lastBlock struct {
	Block uint64 `ch:"block"`
	Time  uint32 `ch:"ts"`
}

// covered returns an error if the log does not have all blocks of the range for each of the vaults yet: a late vault
// is read from its start block while the others follow the head. Without Backfill, the log has all vaults up to the
// final block of the same report, which the range does not exceed; ingest is still in that state until its next step.
func (b *building) covered(ingest *registry.ProgramStatus) error {
	if ingest.State == registry.Backfilling && ingest.Backfill != nil && ingest.Backfill.Block < b.place.Number {
		return serve.Unavailable("The blocks of this range are still being read for some vaults.", nil)
	}
	for _, late := range ingest.LateVaults {
		address := common.HexToAddress(late.Address)
		listed := slices.ContainsFunc(b.vaults, func(v state.Vault) bool { return v.Address == address })
		if listed && late.CoveredTo < b.place.Number {
			return serve.Unavailable(fmt.Sprintf(
				"The blocks of this range are still being read for vault %s, which is at block %d.", address.Hex(), late.CoveredTo),
				nil)
		}
	}
	return nil
}

func (b *building) write(ctx context.Context, out io.Writer, key ed25519.PrivateKey) error {
	w := statement.NewWriter(out, b.header)
	for {
		var some []statementEvent
		var hashes []common.Hash
		err := b.request.Turn(ctx, nil, func(ctx context.Context) (err error) {
			if some, err = b.next(ctx); err == nil {
				hashes, err = b.hashes(ctx, some)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case len(some) == 0:
			return w.Finish(key)
		}
		for i := range some {
			if err := w.Add(some[i].statement(b.pin, b.header.PartnerID, hashes[i])); err != nil {
				return err
			}
		}
	}
}

// hashes returns the block hashes of some events, after checking that the events belong to the state that the
// statement is pinned to.
func (b *building) hashes(ctx context.Context, some []statementEvent) ([]common.Hash, error) {
	if err := b.request.Settled(ctx, b.pin); err != nil {
		return nil, err
	}
	return ask.LiveBlockHashes(ctx, b.pin, serve.Each(some, func(e *statementEvent) ask.InChain {
		return ask.InChain{Block: e.Block, LogIndex: e.LogIndex}
	}))
}

// statementEvent is a deposit or a withdrawal request that names the partner.
type statementEvent struct {
	ask.Entry
	Kind    string         `ch:"kind"`
	Vault   common.Address `ch:"vault"`
	ID      uint64         `ch:"id"`
	Assets  string         `ch:"amount" sql:"toString(assets)"`
	Shares  string         `ch:"share_amount" sql:"toString(shares)"`
	Grouped bool           `ch:"grouped"`
	Time    uint32         `ch:"ts"`
	Tx      common.Hash    `ch:"hash"`
}

// statement returns the event as in its webhook, with the hash of its block.
func (e *statementEvent) statement(p *ask.Pin, partner uint32, hash common.Hash) statement.Event {
	vault, user, tx := e.Vault.Hex(), e.User.Hex(), e.Tx.Hex()
	at, block := webhook.FormatTime(uint64(e.Time)), serve.Decimal(e.Block)
	shares := e.Shares
	if e.Grouped { // the deposit's log does not say them, and the price of its group came later
		shares = ""
	}
	out := statement.Event{Type: webhook.DepositReferral, Data: webhook.DepositData{
		VaultAddress: vault, UserAddress: user, Assets: e.Assets, Shares: shares,
		TxHash: tx, BlockNumber: block, LogIndex: e.LogIndex, Timestamp: at,
	}}
	if e.Kind == "requested" {
		estimate := ""
		if number := p.NumberOrNil(e.Vault, mapping.Requested, mapping.Assets, e.Block, e.Assets); number != nil {
			estimate = *number
		}
		out = statement.Event{Type: webhook.WithdrawalReferral, Data: webhook.WithdrawalData{
			VaultAddress: vault, UserAddress: user, Shares: e.Shares, AssetsEstimate: estimate,
			RequestIndex: serve.Decimal(e.ID), TxHash: tx, BlockNumber: block, LogIndex: e.LogIndex, Timestamp: at,
		}}
	}
	out.BlockHash = hash.Hex()
	out.ID = webhook.EventID(p.ChainID, e.Tx, e.LogIndex, out.Type, partner)
	return out
}

// Probe returns the probe that serves the keys.
func (s *Statements) Probe() serve.Probe {
	return serve.Probe{Path: "/.well-known/navlog-statements", Limited: true, Reads: true, Get: s.Keys}
}

// atOnce is how many events are read at once.
const atOnce = 5000

type ofPartner struct {
	Partner common.Address `ask:"partner" reads:"page.*"`
	Kind    ask.Word       `ask:"kind"`
	ask.Blocks
}

var statementEvents = ask.NewPage[ofPartner, statementEvent]("partner_events", state.SQL(files, "statement_events"),
	ask.OldestFirst)

// statementStream reads the partner's events of one kind in chain order, a page at a time.
type statementStream struct {
	args  ofPartner
	rows  []statementEvent // read but not consumed yet
	after *ask.Place       // the last one that was read
	done  bool             // there is nothing after rows
}

// newStreams returns streams of all events that may be in the statement: the partner's deposits and requests in the
// blocks of the range.
func (b *building) newStreams(ctx context.Context) (out []*statementStream, err error) {
	blocks, err := b.pin.Blocks(ctx, b.span.From, b.span.To)
	for _, kind := range []ask.Word{"deposit", "requested"} {
		out = append(out, &statementStream{args: ofPartner{readmodel.PartnerOwner(b.header.PartnerID), kind, blocks}})
	}
	return out, err
}

// next returns the next events of all streams, up to atOnce, in chain order.
func (b *building) next(ctx context.Context) (some []statementEvent, err error) {
	if b.streams == nil {
		if b.streams, err = b.newStreams(ctx); err != nil {
			return nil, err
		}
	}
	for len(some) < atOnce {
		var first *statementStream
		for _, s := range b.streams {
			if err := s.fill(ctx, b); err != nil {
				return nil, err
			}
			if len(s.rows) > 0 && (first == nil || inChain(&s.rows[0], &first.rows[0]) < 0) {
				first = s
			}
		}
		if first == nil {
			return some, nil
		}
		some, first.rows = append(some, first.rows[0]), first.rows[1:]
	}
	return some, nil
}

// fill reads pages until there is an event to consume, or nothing more.
func (s *statementStream) fill(ctx context.Context, b *building) error {
	for len(s.rows) == 0 && !s.done {
		page, last, err := statementEvents.After(ctx, b.pin, s.args, s.after, atOnce)
		if err != nil {
			return err
		}
		s.after, s.done = last, len(page) < atOnce
		s.rows = slices.DeleteFunc(page, func(e statementEvent) bool { return !b.counts(&e) })
	}
	return nil
}

// counts reports whether an event belongs to a vault of the statement.
func (b *building) counts(e *statementEvent) bool {
	return slices.ContainsFunc(b.vaults,
		func(v state.Vault) bool { return v.Address == e.Vault && e.Block >= v.StartBlock })
}

func inChain(a, b *statementEvent) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex), cmp.Compare(a.Sub, b.Sub))
}
