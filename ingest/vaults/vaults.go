package vaults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

// Set is the vaults of chain.vaults.
type Set []vault

// withoutCode returns the sources of a vault that are not contracts.
func (v vault) withoutCode(ctx context.Context, n *rpc.Node, at *rpc.Header) (missing []mapping.Source, err error) {
	for _, source := range v.Spec.Sources {
		found, err := n.HasCode(ctx, source.Address, at)
		if err != nil {
			return nil, fmt.Errorf("look for the code of %s %s: %w", source.Role, source.Address, err)
		}
		if !found {
			missing = append(missing, source)
		}
	}
	return missing, nil
}

// Check checks with one endpoint that every vault is a contract. If one is not, the error is a RefusedError unless the
// endpoint's head is below the start block of the vault.
func (set Set) Check(ctx context.Context, n *rpc.Node, chainID uint64) error {
	tip, err := n.Latest(ctx)
	if err != nil {
		return err
	}
	var faults, later []error
	for _, v := range set {
		missing, err := v.withoutCode(ctx, n, tip)
		if err != nil {
			return err
		}
		for _, source := range missing {
			if tip.Number < v.Start { // it may not exist yet
				later = append(later, fmt.Errorf("%s %s has no code at block %d, the head of %s, and its vault starts at block "+
					"%d: wait until the node has synced, or correct startBlock in chain.vaults", source.Role, source.Address,
					tip.Number, n.Name, v.Start))
				continue
			}
			faults = append(faults, fmt.Errorf("%s %s has no code on chain %d at block %d: check chain.vaults and chain.rpc",
				source.Role, source.Address, chainID, tip.Number))
		}
	}
	if len(faults) == 0 {
		return errors.Join(later...)
	}
	return rpc.Refuse("%s", errors.Join(faults...).Error())
}

// CheckStarts returns a RefusedError if a start block is lower than in the log.
func (set Set) CheckStarts(cursor *event.Cursor) error {
	log, topic := chainlog.LogTopic(cursor.GetChainId()), chainlog.CursorTopic(cursor.GetChainId())
	var faults []error
	for _, v := range set {
		for _, have := range cursor.GetVaults() {
			if bytes.Equal(have.GetAddress(), v.Address[:]) && v.Start < have.GetStartBlock() {
				faults = append(faults, fmt.Errorf("the start block of vault %s was lowered from %d to %d, but the log is "+
					"append-only and holds the vault from block %d on: set it back, or delete %s and %s to index the chain into a "+
					"new log and run `navlog projection rebuild`",
					v.Address, have.GetStartBlock(), v.Start, have.GetStartBlock(), log, topic))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return rpc.Refuse("%v", errors.Join(faults...))
}

// Registrar keeps the records of the vaults in the log, for one session, and executes operators' commands about vaults.
type Registrar struct {
	Set
	nodes    *rpc.Pool
	selected []vault // those to index
	stale    []vault // those of selected that are not in the log, or have another configured name or mapping there
	writer   *writer.Writer
	status   *status.Tracker
	log      *slog.Logger
	inbox    *inbox // nil without a registry
	// failing is the command whose calls of the nodes failed last, and how many attempts of it failed.
	failing struct {
		command  int64
		attempts int
	}
	responses map[view]hexutil.Bytes // responses that are not in the log yet, in case the node fails between two calls
}

// NewRegistrar returns a registrar of these vaults and of those in the log.
func NewRegistrar(set Set, nodes *rpc.Pool, w *writer.Writer, status *status.Tracker, log *slog.Logger) *Registrar {
	return &Registrar{Set: set, nodes: nodes, writer: w, status: status, log: log,
		responses: map[view]hexutil.Bytes{}}
}

// SelectVaults determines the vaults to index: those of the log that were not removed, and those of chain.vaults that
// are not in the log. The status shows where the two differ. It is called whenever the vaults of the log have changed.
func (r *Registrar) SelectVaults() {
	var vaults []vault
	var before, differ []registry.VaultWarning
	warn := func(address common.Address, text string) {
		differ = append(differ, registry.VaultWarning{Address: address.Hex(), Warning: text})
	}
	for _, v := range r.Set {
		if have := r.writer.State.CoverageOf(v.Address); have != nil && have.Removed {
			warn(v.Address, "it was removed, and is still in chain.vaults of ingest: remove it there, or restore it "+
				"with `navlog vault restore`")
			continue
		} else if have != nil && !sameSources(v.Spec.Sources, r.sourcesOf(v.Address)) {
			warn(v.Address, "its sources in chain.vaults of ingest are not those of the log, whose logs stay: index the "+
				"chain into a new log for other sources")
			v.Spec = nil
		}
		vaults = append(vaults, v)
	}
	for _, known := range r.writer.State.Indexed() {
		if !slices.ContainsFunc(r.Set, func(v vault) bool { return v.Address == known.Address }) {
			warn(known.Address, "it is not in chain.vaults of ingest, and is still indexed and served: add it there, or "+
				"remove it with `navlog vault remove`")
			vaults = append(vaults, vault{known.Address, known.Start, known.Name, nil})
		}
	}
	r.selected = vaults
	r.stale = slices.DeleteFunc(slices.Clone(vaults), func(v vault) bool {
		have := r.writer.State.CoverageOf(v.Address)
		return have != nil && have.Name == v.Name && !r.changed(v)
	})
	r.status.Note(func(st *status.Status) { before, st.VaultWarnings = st.VaultWarnings, differ })
	if !slices.Equal(before, differ) {
		for _, w := range differ {
			r.log.Warn("vault", "vault", w.Address, "warning", w.Warning)
		}
	}
}

// Describe appends the records of the vaults that are not in the log, or that have another configured name or mapping
// there. Vaults are called at the end of tip. did is false if there are none.
func (r *Registrar) Describe(ctx context.Context, n *rpc.Node, tip *rpc.Header) (did bool, err error) {
	switch vaults := r.selected; {
	case len(vaults) == 0:
		return false, rpc.Refuse("every vault of chain.vaults was removed: add another one, or restore one with " +
			"`navlog vault restore`")
	case len(vaults) > Max:
		return false, rpc.Refuse("the log and chain.vaults have %d vaults together and may have %d: vaults of the log "+
			"stay until they are removed, so remove some with `navlog vault remove`, or remove the new ones from chain.vaults",
			len(vaults), Max)
	}
	if len(r.stale) == 0 {
		return false, nil
	}
	return true, r.appendRecords(ctx, n, tip, r.stale)
}

// appendRecords appends the records of vaults that are new, renamed or restored, as one unit. Responses of a vault are
// kept, so that a failure costs only one call.
func (r *Registrar) appendRecords(ctx context.Context, n *rpc.Node, tip *rpc.Header, vaults []vault) error {
	c := &writer.Change{}
	var unit []*event.Record
	for _, v := range vaults {
		known := writer.Coverage{Address: v.Address, Start: v.Start, To: v.Start - 1}
		if have := r.writer.State.CoverageOf(v.Address); have != nil {
			known = *have
		}
		known.Name, known.Removed = v.Name, false
		if err := r.checkDistinct(v); err != nil {
			return err
		}
		fact, err := r.describe(ctx, n, tip, v, known.Start)
		if err != nil {
			return err
		}
		if known.To >= known.Start && !r.writer.State.Mapped.Of(v.Address).Description.Samples() && samples(fact) {
			known.SampledFrom = known.To + 1
		}
		known.NewRecord = writer.VaultFact(fact)
		unit = append(unit, known.NewRecord)
		c.Covered = append(c.Covered, known)
		var presets []string
		for _, m := range fact.GetMappings() {
			presets = append(presets, m.GetPreset())
		}
		r.log.Info("appending vault record", "vault", v.Address, "name", fact.GetName(), "startBlock", known.Start,
			"mappings", presets)
	}
	c.Units = [][]*event.Record{unit}
	if err := r.writer.Commit(ctx, c); err != nil {
		return err
	}
	clear(r.responses)
	r.SelectVaults()
	return nil
}

// samples reports whether the mapping of a vault record samples NAV.
func samples(r *event.Vault) bool {
	sources, err := mapping.Read(r)
	return err == nil && sources.Description.Samples()
}

// checkDistinct returns an error for a vault whose logs could be those of another one.
func (r *Registrar) checkDistinct(v vault) error {
	ours := r.specOf(v).Sources
	for _, other := range r.writer.State.Covered {
		if other.Address == v.Address || other.Removed {
			continue
		}
		if a := overlap(ours, r.sourcesOf(other.Address)); a != nil {
			return rpc.Refuse("the vaults %s and %s share the contract %s, and no topic distinguishes their logs: give one of "+
				"them a topic filter", other.Address, v.Address, a)
		}
	}
	return nil
}

// describe reads what a vault returns about itself, unless it is configured. Without decimals or an asset its amounts
// mean nothing.
func (r *Registrar) describe(
	ctx context.Context, n *rpc.Node, tip *rpc.Header, v vault, start uint64,
) (*event.Vault, error) {
	q := vaultCalls{Registrar: r, ctx: ctx, node: n, at: tip, vault: v.Address}
	given := r.specOf(v)
	fact, err := given.record(v.Address, start, v.Name)
	if err != nil {
		return nil, err
	}
	fact.Aliases = r.writer.State.Records[v.Address].GetAliases()
	if _, err := mapping.Read(fact); err != nil {
		return nil, rpc.Refuse("%v", err)
	}
	if v.Name == "" {
		fact.Name = label(&q, v.Address, "name")
	}
	if fact.Name == "" {
		fact.Name = v.Address.Hex()
	}
	if given.Symbol == "" {
		fact.Symbol = label(&q, v.Address, "symbol")
	}
	fact.Decimals = decimals(&q, v.Address, given.Decimals)
	asset := given.Asset
	if asset == nil {
		read := required[common.Address](&q, v.Address, "asset")
		asset = &read
	}
	fact.Asset = &event.Token{Address: bytes.Clone(asset[:]), Symbol: given.AssetSymbol}
	if given.AssetSymbol == "" {
		fact.Asset.Symbol = label(&q, *asset, "symbol")
	}
	fact.Asset.Decimals = decimals(&q, *asset, given.AssetDecimals)
	return fact, q.err
}

func decimals(q *vaultCalls, of common.Address, given int) uint32 {
	if given >= 0 {
		return uint32(given)
	}
	return uint32(required[uint8](q, of, "decimals"))
}

// vaultCalls calls the view functions of a vault one after the other and keeps the first error.
type vaultCalls struct {
	*Registrar
	ctx   context.Context
	node  *rpc.Node
	at    *rpc.Header // block at whose end the vault is called
	vault common.Address
	err   error
}

// view is a view function of a contract.
type view struct {
	of     common.Address
	method string
}

// errNoResult means that a call returned nothing because of the contract, not the node.
var errNoResult = errors.New("the contract does not answer")

// required calls a function without which the vault cannot be indexed.
func required[T any](q *vaultCalls, of common.Address, method string) (answer T) {
	if q.err != nil {
		return answer
	}
	answer, err := callView[T](q, view{of, method})
	if errors.Is(err, errNoResult) {
		err = rpc.Refuse("vault %s cannot be indexed: %s() of %s: %v: is it an ERC-4626 vault? check chain.vaults, and "+
			"configure there what the contract does not return", q.vault, method, of, err)
	}
	q.err = err
	return answer
}

// maxLabel is the maximum size of a vault's name and of a symbol, in bytes.
const maxLabel = 256

// label reads a name or a symbol, which may be missing. A contract may return any bytes: white space around them is
// removed, unprintable characters are replaced and long labels are cut.
func label(q *vaultCalls, of common.Address, method string) string {
	if q.err != nil {
		return ""
	}
	text, err := callView[string](q, view{of, method})
	if errors.Is(err, errNoResult) {
		q.log.Warn("vault does not return a value, its record has none", "vault", q.vault, "of", of, "method", method,
			"error", err)
		return ""
	}
	q.err = err
	return printable.Text(strings.TrimSpace(text), maxLabel)
}

// callView calls a view function without arguments, at the end of a block: an output at "latest" may be that of a
// backend below the block that created the contract.
func callView[T any](q *vaultCalls, v view) (answer T, err error) {
	parsed := contracts.VaultABI()
	data, err := parsed.Pack(v.method)
	if err != nil {
		return answer, fmt.Errorf("encode a call of %s(): %w", v.method, err)
	}
	output, found := q.responses[v]
	if !found {
		samples, noState, err := q.nodes.Sample(q.ctx, q.node,
			[]rpc.SampleCall{{Vault: q.vault, Number: q.at.Number, To: v.of, Input: data}},
			map[uint64]*rpc.Header{q.at.Number: q.at})
		switch {
		case err != nil:
			return answer, fmt.Errorf("call %s() of %s: %w", v.method, v.of, err)
		case noState > 0:
			return answer, fmt.Errorf("call %s() of %s: fewer than %d endpoints have the state of block %d", v.method, v.of,
				q.nodes.Agreement, noState)
		case samples[0].Output == nil:
			return answer, fmt.Errorf("%w: it reverts", errNoResult)
		}
		output = samples[0].Output
	}
	if text, ok := any(&answer).(*string); ok && len(output) == 32 { // contracts from before names were strings
		*text = string(bytes.TrimRight(output, "\x00"))
		q.responses[v] = output
		return answer, nil
	}
	values, err := parsed.Unpack(v.method, output)
	if err == nil {
		if value, ok := values[0].(T); ok {
			q.responses[v] = output
			return value, nil
		}
		err = fmt.Errorf("it gives a %T", values[0])
	}
	return answer, fmt.Errorf("%w: %w", errNoResult, err)
}
