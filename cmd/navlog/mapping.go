package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
)

// mappingCmd needs no configuration and no engine: it is for authors of mappings.
type mappingCmd struct {
	Check mappingCheckCmd `cmd:"" help:"Print every mistake in a mapping, with its line and column."`
	Try   mappingTryCmd   `cmd:"" help:"Read the logs of a vault from a node and print their effects by a mapping. Nothing is stored."`
}

type mappingCheckCmd struct {
	File string `arg:"" type:"existingfile" help:"A mapping, or the description of a vault."`
	cli.Output
}

func (cmd mappingCheckCmd) Run(s *cli.Streams) error {
	text, err := cli.ReadMapping(cmd.File)
	if err != nil {
		return err
	}
	_, _, err = mapping.ParseFile(cmd.File, text, cli.Preset)
	mistakes, listed := errors.AsType[mapping.Mistakes](err)
	if err != nil && !listed {
		return cli.Configuration.With(err)
	}
	lines := make([]string, len(mistakes))
	for i, m := range mistakes {
		lines[i] = m.String()
	}
	result := map[string]any{"file": cmd.File, "ok": err == nil, "mistakes": lines}
	printed := cmd.Print(s.Out, result, func(w io.Writer) {
		if err == nil {
			cli.Fprintf(w, "%s has no mistakes.\n", cmd.File)
			return
		}
		_ = cli.MappingMistakes(w, cmd.File, err)
	})
	if err == nil {
		return printed
	}
	return cli.MappingMistakes(io.Discard, cmd.File, err)
}

type mappingTryCmd struct {
	Mapping string   `arg:"" help:"A file with a mapping or the description of a vault, or the name of a preset."`
	Address []string `placeholder:"[ROLE=]ADDRESS" help:"A contract of the vault, and which of the mapping's sources it is (default: vault); may be repeated. The description of a vault already lists them."`
	From    uint64   `required:"" placeholder:"BLOCK" help:"First block."`
	To      uint64   `required:"" placeholder:"BLOCK" help:"Last block, included."`
	cli.NodeFlags
	Limit int `default:"100" range:"0 to 100000" help:"Maximum number of effects and of quarantined logs to print, 0 to 100000; all are counted."`
	cli.Output
}

// tried is the result of applying a mapping to logs.
type tried struct {
	From        uint64             `json:"from"`
	To          uint64             `json:"to"`
	Logs        int                `json:"logs"`
	Effects     map[string]int     `json:"effects"`
	Without     map[string]int     `json:"eventsWithoutEffect"`
	Undeclared  map[string]int     `json:"eventsUnlikeDeclaration"`
	Quarantined int                `json:"quarantined"`
	Unknown     map[string]int     `json:"unknownTopics"`
	NoRequest   map[string]int     `json:"effectsOnUnknownRequests"`
	Repeated    map[string]int     `json:"repeatedEffects"`
	Parts       map[string]int     `json:"effectsOnParts"`
	First       []triedEffect      `json:"firstEffects"`
	Faults      []triedQuarantined `json:"firstQuarantined"`
}

// triedLog is the position of a log.
type triedLog struct {
	Block uint64      `json:"block"`
	Tx    common.Hash `json:"txHash"`
	Index uint32      `json:"logIndex"`
	Event string      `json:"event"`
}

type triedEffect struct {
	triedLog
	Effect string            `json:"effect"`
	Fields map[string]string `json:"fields"`
	values []mapping.Value
}

type triedQuarantined struct {
	triedLog
	Why string `json:"why"`
}

func (cmd mappingTryCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.From > cmd.To {
		return cli.Usage.With(fmt.Errorf("--from is %d and must not be after --to, %d", cmd.From, cmd.To))
	}
	t, err := cmd.newTrial(s)
	if err != nil {
		return err
	}
	client, url, err := cmd.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	t.node = client
	steps := console.Progress(cli.Flags{}, s)
	err = t.run(ctx, func(done uint64) { steps.Report("mapping: blocks", done, cmd.To-cmd.From+1) })
	steps.End()
	if err != nil {
		return cli.Unreachable.With(contracts.Discreet(err, url))
	}
	return cmd.Print(s.Out, t.tried, t.write)
}

// maxUnknown limits how many unknown topics are counted apart.
const maxUnknown = 100_000

// newTrial compiles the mapping, and returns a trial of it without a node.
func (cmd mappingTryCmd) newTrial(s *cli.Streams) (*trial, error) {
	m, d, err := cli.Mapping(s.Err, cmd.Mapping)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		if d, err = cmd.describe(s, m); err != nil {
			return nil, err
		}
	case len(cmd.Address) > 0:
		return nil, cli.Usage.With(fmt.Errorf("%s has the addresses of its sources: omit --address", cmd.Mapping))
	}
	return &trial{limit: cmd.Limit, vault: &mapping.Sources{Vault: d.Compile(), Description: d},
		keys: map[uint64]*triedRequest{}, ids: map[common.Hash]*triedRequest{}, lines: map[common.Address]*mapping.Amount{},
		tried: tried{From: cmd.From, To: cmd.To, Effects: map[string]int{}, Without: map[string]int{},
			Undeclared: map[string]int{}, Unknown: map[string]int{}, NoRequest: map[string]int{},
			Repeated: map[string]int{}, Parts: map[string]int{}, First: []triedEffect{}, Faults: []triedQuarantined{}}}, nil
}

// describe returns the vault with a mapping in all blocks whose contracts are those of --address.
func (cmd mappingTryCmd) describe(s *cli.Streams, m *mapping.Mapping) (*mapping.Description, error) {
	d := &mapping.Description{Ranges: []mapping.Range{{To: math.MaxUint64, Mapping: m}}}
	for _, given := range cmd.Address {
		name, text, ok := strings.Cut(given, "=")
		if !ok {
			name, text = "vault", given
		}
		source := mapping.Source{Role: name, Address: common.HexToAddress(text)}
		same := func(other mapping.Source) bool { return other.Role == name || other.Address == source.Address }
		if _, known := m.Role(name); !known {
			return nil, cli.Usage.With(fmt.Errorf("--address is %q, and the mapping has no source %q", given, name))
		}
		if !common.IsHexAddress(text) {
			return nil, cli.Usage.With(fmt.Errorf("--address is %q and must be an address: 0x and 40 hex digits", given))
		}
		if slices.ContainsFunc(d.Sources, same) {
			return nil, cli.Usage.With(fmt.Errorf("--address gives %s or the source %q twice, and a contract is one source of "+
				"a vault", source.Address, name))
		}
		d.Sources = append(d.Sources, source)
	}
	if len(d.Sources) == 0 {
		return nil, cli.Usage.With(errors.New("there is no contract to read: pass its address as --address"))
	}
	for _, role := range m.Roles {
		named := func(source mapping.Source) bool { return source.Role == role.Name }
		if !role.Optional && !slices.ContainsFunc(d.Sources, named) {
			cli.Fprintf(s.Err, "navlog: warning: the mapping requires a source %q, and no --address names it: the effects of "+
				"its logs are missing, and so are those that need them\n", role.Name)
		}
	}
	return d, nil
}

// trial maps logs and counts the results.
type trial struct {
	tried
	node  *ethclient.Client
	vault *mapping.Sources
	limit int
	// keys and ids are those of the requests so far. lines are the shares of each owner's requests, if claims name no
	// request.
	keys  map[uint64]*triedRequest
	ids   map[common.Hash]*triedRequest
	lines map[common.Address]*mapping.Amount
}

type triedRequest struct {
	shares mapping.Amount
	ended  bool
}

func (t *trial) run(ctx context.Context, progress func(done uint64)) error {
	return cli.ReadLogs(ctx, t.node, t.vault.Addresses(), t.From, t.To, func(logs []types.Log, to uint64) error {
		progress(to - t.From + 1)
		return t.add(ctx, logs)
	})
}

// add maps logs, one transaction at a time.
func (t *trial) add(ctx context.Context, logs []types.Log) error {
	logs = slices.DeleteFunc(logs, func(l types.Log) bool { return !t.vault.TakesLog(l.Address, l.Topics) })
	for _, tx := range cli.Transactions(logs) {
		seconds := tx[0].BlockTimestamp
		if seconds == 0 { // an older node does not send it
			header, err := t.node.HeaderByNumber(ctx, new(big.Int).SetUint64(tx[0].BlockNumber))
			if err != nil {
				return fmt.Errorf("request block %d from the node: %w", tx[0].BlockNumber, err)
			}
			seconds = header.Time
		}
		t.transaction(tx, seconds)
	}
	return nil
}

func (t *trial) transaction(logs []types.Log, seconds uint64) {
	tx := make([]mapping.Log, len(logs))
	for i := range logs {
		l := &logs[i]
		role, _ := t.vault.Role(l.Address)
		tx[i] = mapping.Log{Role: role, Place: mapping.Place(l.BlockNumber, uint32(l.Index)), Time: seconds,
			Topics: l.Topics, Data: l.Data}
	}
	at := func(i uint32) triedLog {
		l := &logs[i]
		return triedLog{l.BlockNumber, l.TxHash, uint32(l.Index), t.vault.Event(&tx[i]).Name}
	}
	out, err := t.vault.Map(tx, nil)
	counted := make([]bool, len(tx))
	for i := range out {
		e := &out[i]
		counted[e.Log] = true
		t.follow(e)
		if t.Effects[e.Kind.String()]++; len(t.First) >= t.limit {
			continue
		}
		shown := triedEffect{triedLog: at(e.Log), Effect: e.Kind.String(), Fields: map[string]string{}, values: e.Values()}
		for _, v := range shown.values {
			shown.Fields[v.Name] = v.Text
		}
		t.First = append(t.First, shown)
	}
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	for _, q := range quarantine {
		counted[q.Log] = true
		if t.Quarantined++; len(t.Faults) < t.limit {
			t.Faults = append(t.Faults, triedQuarantined{at(uint32(q.Log)), q.Why})
		}
	}
	t.Logs += len(tx)
	for i := range tx {
		switch e := t.vault.Event(&tx[i]); {
		case counted[i]:
		case e != nil && !t.vault.Declares(&tx[i]):
			t.Undeclared[e.Name]++
		case e != nil:
			t.Without[e.Name]++
		case len(tx[i].Topics) == 0:
			t.Unknown["no topic"]++
		case len(t.Unknown) < maxUnknown || t.Unknown[tx[i].Topics[0].Hex()] > 0:
			t.Unknown[tx[i].Topics[0].Hex()]++
		default:
			t.Unknown["more topics"]++
		}
	}
}

// follow counts the effects that do not fit the requests of earlier logs.
func (t *trial) follow(e *mapping.Effect) {
	name := e.Kind.String()
	switch e.Kind {
	case mapping.Requested:
		if t.keys[e.ID] != nil {
			t.Repeated[name]++
			return
		}
		q := &triedRequest{shares: e.Shares}
		t.keys[e.ID] = q
		if t.ids[e.SourceID] == nil && e.SourceID != (common.Hash{}) {
			t.ids[e.SourceID] = q
		}
		if line := t.line(e.Owner); e.Present(mapping.Fifo) {
			line.Add(line, &e.Shares)
		}
	case mapping.Funded, mapping.Claimed, mapping.Cancelled, mapping.Expired:
		switch {
		case e.Present(mapping.ID):
			t.change(name, t.keys[e.ID], e)
		case e.Present(mapping.SourceID):
			t.change(name, t.ids[e.SourceID], e)
		case e.Kind != mapping.Funded && !e.Present(mapping.Group):
			line := t.line(e.Owner)
			switch {
			case line.Lt(&e.Shares):
				t.NoRequest[name]++
				line.Clear()
			case e.Shares.IsZero():
				t.NoRequest[name]++
			default:
				line.Sub(line, &e.Shares)
			}
		}
	}
}

// change applies an effect to the request that it names; nil if no earlier log made it.
func (t *trial) change(name string, q *triedRequest, e *mapping.Effect) {
	switch {
	case q == nil:
		t.NoRequest[name]++
		return
	case q.ended:
		t.Repeated[name]++
	case e.Present(mapping.Shares) && e.Shares != q.shares:
		t.Parts[name]++
	}
	q.ended = q.ended || e.Kind != mapping.Funded
}

func (t *trial) line(owner common.Address) *mapping.Amount {
	if t.lines[owner] == nil {
		t.lines[owner] = new(mapping.Amount)
	}
	return t.lines[owner]
}

func (t *trial) write(w io.Writer) {
	cli.Fprintf(w, "Blocks %d to %d have %s of these contracts. Nothing was stored.\n", t.From, t.To,
		printable.Count(t.Logs, "log"))
	cli.Section(w, t.First, "BLOCK\tLOG\tEVENT\tEFFECT\tFIELDS", func(e triedEffect) []any {
		var fields []string
		for _, v := range e.values {
			fields = append(fields, v.Name+"="+v.Text)
		}
		return []any{e.Block, e.Index, e.Event, e.Effect, strings.Join(fields, " ")}
	})
	cli.Section(w, t.Faults, "BLOCK\tLOG\tEVENT\tQUARANTINED, BECAUSE",
		func(q triedQuarantined) []any { return []any{q.Block, q.Index, q.Event, q.Why} })
	counts := func(title string, of map[string]int) {
		names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
			return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
		})
		cli.Section(w, names[:min(len(names), max(t.limit, 1))], title+"\tLOGS",
			func(name string) []any { return []any{name, of[name]} })
	}
	counts("EFFECT", t.Effects)
	counts("EFFECT ON A REQUEST THAT NO EARLIER LOG MAKES", t.NoRequest)
	counts("EFFECT THAT REPEATS ONE OF AN EARLIER LOG", t.Repeated)
	counts("EFFECT ON A WHOLE REQUEST, WITH OTHER SHARES", t.Parts)
	counts("KNOWN EVENT WITHOUT EFFECT", t.Without)
	counts("KNOWN EVENT WITH OTHER TOPICS OR DATA THAN DECLARED", t.Undeclared)
	counts("UNKNOWN EVENT, BY ITS FIRST TOPIC", t.Unknown)
	if t.Quarantined > 0 {
		cli.Fprintf(w, "\nQuarantined logs: %d.\n", t.Quarantined)
	}
	if t.Logs > 0 && len(t.Effects)+len(t.Without)+len(t.Undeclared)+t.Quarantined == 0 {
		fmt.Fprintln(w, "\nThe mapping has none of these events: it is for another protocol,"+
			" or for another contract of the vault.")
	}
}
