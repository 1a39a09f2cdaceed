// Package operate implements the operator's commands that read the log, and connects other commands to it. They need
// Kafka and the id of the chain, but no running program.
package operate

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kerr"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/webhook"
)

// Log is `navlog log`: tail, show and stats.
type Log struct {
	Tail  logTailCmd  `cmd:"" help:"Show the newest records; with --follow, new ones too."`
	Show  logShowCmd  `cmd:"" help:"Show one record and its position."`
	Stats logStatsCmd `cmd:"" help:"Count the records of the log by kind and by event, and prove that none is missing."`
}

// logFlags are shared by the commands that read the log. They need only Kafka and the chain's id.
type logFlags struct {
	cli.Flags
	JSON bool `name:"json" help:"Print JSON: one object for each record, or one for stats."`
}

// logLine is a record for people and for scripts. The fields of an event are decimal strings, in the smallest unit of
// the asset or of the shares, because they may not fit in a number.
type logLine struct {
	Seq      uint64            `json:"seq"`
	Offset   int64             `json:"offset"`
	Type     string            `json:"type"`               // log, block, vault, decision or sample
	Retracts uint64            `json:"retracts,omitempty"` // seq of the record that this one retracts; 0: none
	Boundary bool              `json:"boundary"`           // the last record of a unit
	Block    uint64            `json:"block,omitempty"`
	Time     *time.Time        `json:"time,omitempty"`  // of the block or of the decision, UTC
	Vault    string            `json:"vault,omitempty"` // its address
	Event    string            `json:"event,omitempty"` // kind of event of a log
	Data     map[string]string `json:"data,omitempty"`  // its fields
	// EventID is the id of the webhook event about a log that names a partner by itself, with the newest aliases of its
	// vault. It is empty if a companion log would have to be read, too.
	EventID string `json:"eventId,omitempty"`
	TraceID string `json:"traceId,omitempty"` // of the trace in which ingest read the record, if there was one
	// Undecoded is why a record has no event: the log also keeps logs that the mapping does not cover.
	Undecoded string          `json:"undecoded,omitempty"`
	Record    json.RawMessage `json:"record,omitempty"` // the whole record, only for `log show`; bytes are base64
}

func lineOf(chainID uint64, e chainlog.Entry, vaults *mapping.Vaults) logLine {
	l := logLine{Seq: e.Seq, Offset: e.Offset, Type: chainlog.TypeOf(e.Record), Boundary: e.Boundary, Retracts: e.Retracts}
	l.TraceID = telemetry.TraceID(e.Parent)
	switch fact := e.Fact.(type) {
	case *event.Record_Log:
		l.Block, l.Time, l.Vault = fact.Log.BlockNumber, at(fact.Log.BlockTime*1000), mapping.VaultOf(fact.Log).Hex()
		l.decode(fact.Log, vaults)
		l.EventID = eventID(chainID, fact.Log, vaults)
	case *event.Record_Block:
		l.Block, l.Time = fact.Block.Number, at(fact.Block.Time*1000)
		l.Data = map[string]string{"hash": common.BytesToHash(fact.Block.Hash).Hex()}
	case *event.Record_Vault:
		l.Vault = common.BytesToAddress(fact.Vault.Address).Hex()
		l.Data = map[string]string{"name": fact.Vault.Name, "startBlock": fmt.Sprint(fact.Vault.StartBlock)}
		if n := len(fact.Vault.Aliases); n > 0 {
			l.Data["aliases"] = fmt.Sprint(n)
		}
	case *event.Record_Sample:
		l.Block, l.Time = fact.Sample.BlockNumber, at(fact.Sample.BlockTime*1000)
		l.Vault = common.BytesToAddress(fact.Sample.Vault).Hex()
		l.Data = map[string]string{"nav": new(big.Int).SetBytes(fact.Sample.Assets).String()}
	case *event.Record_Decision:
		l.Time = at(fact.Decision.Time)
		l.Data = map[string]string{"kind": fact.Decision.Kind, "reason": fact.Decision.Reason}
	}
	return l
}

// eventID returns the id of the webhook event about a log; empty if the log names no partner.
func eventID(chainID uint64, l *event.Log, vaults *mapping.Vaults) string {
	effect, err := vaults.Of(mapping.VaultOf(l)).Referral(l)
	if err != nil || effect == nil {
		return ""
	}
	return webhook.EventID(chainID, common.BytesToHash(l.GetTxHash()), l.GetLogIndex(), webhook.TypeOf(effect),
		effect.GetPartnerId()).String()
}

// at converts Unix milliseconds.
func at(ms uint64) *time.Time {
	t := time.UnixMilli(int64(ms)).UTC()
	return &t
}

// decode describes the effects of a log by the mapping of its vault. Fields that come from a companion log are missing,
// since only one log is available here. An effect that needs them is not described.
func (l *logLine) decode(raw *event.Log, vaults *mapping.Vaults) {
	if raw.Omitted() {
		l.Undecoded = fmt.Sprintf("its data of %s is not in the log: the hash is 0x%x",
			printable.Count(raw.DataLength, "byte"), raw.DataHash)
		return
	}
	sources := vaults.Of(mapping.VaultOf(raw))
	log, sound := sources.FromRecord(raw)
	if !sound {
		l.Undecoded = "its layout matches no source of the vault"
		return
	}
	known, effects, fault := sources.One(&log, nil)
	switch {
	case fault != nil && fault.Missing != nil:
		l.Event, l.Undecoded = known.Name,
			fmt.Sprintf("its effect also depends on the log %s of its transaction", fault.Missing.Name)
		return
	case fault != nil:
		l.Undecoded = fault.Error()
		return
	case known == nil:
		l.Undecoded = "no event of the vault's mapping"
		return
	}
	l.Event = known.Name
	l.Data = map[string]string{"tx": common.BytesToHash(raw.TxHash).Hex(), "logIndex": fmt.Sprint(raw.LogIndex)}
	var kinds []string
	for i := range effects {
		prefix := ""
		if len(effects) > 1 {
			prefix = effects[i].Kind.String() + "."
		}
		kinds = append(kinds, effects[i].Kind.String())
		for _, v := range effects[i].Values() {
			l.Data[prefix+v.Name] = v.Text
		}
	}
	if len(kinds) > 0 {
		l.Data["effect"] = strings.Join(kinds, ", ")
	}
}

func (l logLine) print(out io.Writer) error {
	what := l.Type
	if l.Type == "log" {
		what = cmp.Or(l.Event, "log ("+l.Undecoded+")")
	}
	if l.Retracts != 0 {
		what = fmt.Sprintf("RETRACTS seq %d: %s", l.Retracts, what)
	}
	words := []string{fmt.Sprintf("%d", l.Seq), what}
	if l.Block != 0 {
		words = append(words, fmt.Sprintf("block %d", l.Block))
	}
	if l.Vault != "" {
		words = append(words, "vault "+l.Vault)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Data)) {
		words = append(words, fmt.Sprintf("%s=%s", name, l.Data[name]))
	}
	if l.EventID != "" {
		words = append(words, "eventId="+l.EventID)
	}
	if l.TraceID != "" {
		words = append(words, "traceId="+l.TraceID)
	}
	_, err := cli.Fprintf(out, "%s\n", strings.Join(words, "  "))
	return err
}

func (f logFlags) write(s *cli.Streams, l logLine) error {
	if f.JSON {
		return json.NewEncoder(s.Out).Encode(l)
	}
	return l.print(s.Out)
}

// searchProgress shows that the command searches for a record: its offset is unknown, so the log is read from its first
// record.
func (f logFlags) searchProgress(s *cli.Streams, seq uint64) *console.Steps {
	steps := console.Progress(f.Flags, s)
	steps.Report(fmt.Sprintf("log: looking for record %d", seq), 0, 0)
	return steps
}

type logTailCmd struct {
	logFlags
	Limit  uint64 `short:"n" default:"20" range:"0 to 1000000" placeholder:"N" help:"Number of newest records to show, 0 to 1000000 (default: 20)."`
	Follow bool   `short:"f" help:"Keep printing appended records, including the retractions of a reorganisation, until a signal arrives."`
}

// Run reads committed records only.
func (cmd logTailCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, cursor, vaults, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	from := chainlog.Position{Seq: cursor.Seq - min(cmd.Limit, cursor.Seq)} // the cursor has the newest seq
	steps := cmd.searchProgress(s, from.Seq+1)
	defer steps.End()
	if !cmd.Follow {
		return chainlog.ReadAfter(ctx, c.Chain.ID, from, func(e chainlog.Entry) error {
			steps.End()
			return cmd.write(s, lineOf(c.Chain.ID, e, vaults))
		}, c.Kafka.Options()...)
	}
	reader, err := chainlog.NewReader(c.Chain.ID, from, c.Kafka.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		entries, err := reader.Poll(ctx, 1000)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		steps.End()
		for _, e := range entries {
			if err := cmd.write(s, lineOf(c.Chain.ID, e, vaults)); err != nil {
				return err
			}
		}
	}
}

// open reads the configuration, the newest cursor, and the mappings of the vaults. A log without a cursor is an error.
func (f logFlags) open(ctx context.Context) (config.Config, *event.Cursor, *mapping.Vaults, error) {
	c, err := config.ReadReaching(ctx, f.Flags, config.NeedChainID, config.NeedKafka)
	if err != nil {
		return c, nil, nil, err
	}
	cursor, records, err := NewestVaults(ctx, c)
	if err != nil {
		return c, nil, nil, err
	}
	vaults, err := mapping.NewVaults(records...)
	return c, cursor, vaults, err
}

// kafkaPatience is the time limit for reading the cursor; a Kafka client retries forever.
const kafkaPatience = 15 * time.Second

// NewestVaults reads the newest cursor and the newest record of each vault from the log. A log without a cursor is an
// error. A broker must respond (config.ReadReaching).
func NewestVaults(ctx context.Context, c config.Config) (*event.Cursor, []*event.Vault, error) {
	limited, cancel := context.WithTimeout(ctx, kafkaPatience)
	defer cancel()
	cursor, err := chainlog.ReadCursor(limited, c.Chain.ID, c.Kafka.Options()...)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return nil, nil, cli.Unreachable.With(fmt.Errorf("read %s from %s: no response within %s",
			chainlog.CursorTopic(c.Chain.ID), strings.Join(c.Kafka.Brokers, ", "), kafkaPatience))
	case err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition):
		return nil, nil, err
	case cursor == nil:
		return nil, nil, fmt.Errorf("the log of chain %d has no record yet: is `navlog ingest` running?", c.Chain.ID)
	}
	records, err := chainlog.ReadVaults(ctx, c.Chain.ID, cursor, c.Kafka.Options()...)
	return cursor, records, err
}

type logShowCmd struct {
	logFlags
	Seq uint64 `arg:"" help:"Number of the record, from 1."`
}

// errShown ends the reading of the log.
var errShown = errors.New("the record was shown")

func (cmd logShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, cursor, vaults, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	if cmd.Seq < 1 || cmd.Seq > cursor.Seq {
		return fmt.Errorf("there is no record %d: the log of chain %d goes from 1 to %d", cmd.Seq, c.Chain.ID, cursor.Seq)
	}
	steps := cmd.searchProgress(s, cmd.Seq)
	defer steps.End()
	err = chainlog.ReadAfter(ctx, c.Chain.ID, chainlog.Position{Seq: cmd.Seq - 1}, func(e chainlog.Entry) error {
		steps.End()
		l := lineOf(c.Chain.ID, e, vaults)
		var err error
		if l.Record, err = protojson.Marshal(e.Record); err != nil {
			return fmt.Errorf("show record %d: %w", e.Seq, err)
		}
		if err = cmd.write(s, l); err == nil && !cmd.JSON {
			_, err = cli.Fprintf(s.Out, "at       offset %d of %s, ends a unit: %t\nrecord   %s\n", l.Offset,
				chainlog.LogTopic(c.Chain.ID), l.Boundary, string(l.Record))
		}
		return cmp.Or(err, errShown)
	}, c.Kafka.Options()...)
	if errors.Is(err, errShown) {
		return nil
	}
	return err
}

type logStatsCmd struct{ logFlags }

// logStats describes the content of a log. Counts are of records; a retraction is one more record, and removes its
// event.
type logStats struct {
	ChainID     uint64            `json:"chainId"`
	LogID       string            `json:"logId"`
	Records     uint64            `json:"records"`
	Units       uint64            `json:"units"`
	Retractions uint64            `json:"retractions"`
	Bytes       uint64            `json:"bytes"` // of the records' values, uncompressed
	Types       map[string]uint64 `json:"types"`
	Events      map[string]int64  `json:"events"` // of logs that were not retracted; unknown ones could not be decoded
	FirstBlock  uint64            `json:"firstBlock"`
	LastBlock   uint64            `json:"lastBlock"`
	FinalBlock  uint64            `json:"finalBlock"`
	Frozen      string            `json:"frozen,omitempty"` // the reason why nothing is appended
}

// Run reads the whole log: the reader fails on a missing seq and on a duplicate.
func (cmd logStatsCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, cursor, vaults, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	st := logStats{ChainID: c.Chain.ID, LogID: hex.EncodeToString(cursor.LogId), FinalBlock: cursor.FinalBlock,
		Frozen: cursor.Frozen, Types: map[string]uint64{}, Events: map[string]int64{}}
	steps := console.Progress(cmd.Flags, s)
	err = chainlog.ReadAfter(ctx, c.Chain.ID, chainlog.Position{}, func(e chainlog.Entry) error {
		steps.Report("log: records", e.Seq, max(e.Seq, cursor.Seq)) // more may have been appended since
		st.add(e, vaults)
		return nil
	}, c.Kafka.Options()...)
	steps.End()
	var hole *chainlog.HoleError
	if errors.As(err, &hole) {
		err = cli.Different.With(err)
	}
	if err != nil {
		return err
	}
	return cli.Output{JSON: cmd.JSON}.Print(s.Out, st, st.write)
}

func (st *logStats) add(e chainlog.Entry, vaults *mapping.Vaults) {
	l := lineOf(st.ChainID, e, vaults)
	st.Records, st.Bytes = st.Records+1, st.Bytes+uint64(len(e.Value))
	if l.Boundary {
		st.Units++
	}
	if l.Retracts != 0 {
		st.Retractions++
	} else {
		st.Types[l.Type]++
	}
	if l.Type == "log" {
		st.Events[cmp.Or(l.Event, "unknown")] += int64(chainlog.Sign(e.Record))
	}
	if l.Block != 0 {
		if st.FirstBlock == 0 {
			st.FirstBlock = l.Block
		}
		st.FirstBlock, st.LastBlock = min(st.FirstBlock, l.Block), max(st.LastBlock, l.Block)
	}
}

func (st *logStats) write(w io.Writer) {
	cli.Fprintf(w, "log\t%s of chain %d\nrecords\t%d in %s, no seq missing, none twice\nbytes\t%d\nblocks\t%d to %d, "+
		"final up to %d\nretracted\t%d\n",
		st.LogID, st.ChainID, st.Records, printable.Count(st.Units, "unit"), st.Bytes, st.FirstBlock, st.LastBlock,
		st.FinalBlock, st.Retractions)
	if st.Frozen != "" {
		cli.Fprintf(w, "FROZEN\t%s\n", st.Frozen)
	}
	cli.Rows(w, slices.Sorted(maps.Keys(st.Types)), "\nRECORDS\t",
		func(name string) []any { return []any{name, st.Types[name]} })
	cli.Rows(w, slices.Sorted(maps.Keys(st.Events)), "\nEVENTS\t",
		func(name string) []any { return []any{name, st.Events[name]} })
}
