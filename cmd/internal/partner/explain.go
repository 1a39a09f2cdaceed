package partner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
)

// Explain shows the logs behind a number of the API and adds them up locally, so that the reader need not trust the
// API's sum.
type Explain struct {
	User       explainUserCmd       `cmd:"" help:"Explain a number of a user: totalDeposited, totalWithdrawn, firstSeen, holdings/deposits/VAULT/_count, ..."`
	Vault      explainVaultCmd      `cmd:"" help:"Explain a number of a vault: navPerShare, totalAssets, totalSupply, userCount, pendingWithdrawals."`
	Settlement explainSettlementCmd `cmd:"" help:"Explain a number of a vault's settlement: depositsToSweep/count, withdrawalsToFund/totalAmount, ..."`
	Partner    explainPartnerCmd    `cmd:"" help:"Explain a number of the partner that the key belongs to: totalVolume, totalDeposits, uniqueUsers, byVault/VAULT/totalVolume, ..."`
}

// explainFlags are shared by the explain commands.
type explainFlags struct {
	cli.Flags
	URL       string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"Address of the API (${default}). No configuration is needed."`
	AsOf      *int64 `name:"as-of" placeholder:"BLOCK" help:"Explain the number as of this block (default: the newest one)."`
	Retracted bool   `help:"Show retracted logs too."`
	Proof     bool   `help:"Prove each log from the hash of its block, and its change of the number from the log itself; the API needs http.proofRpc."`
	RPCFile   string `name:"rpc-file" type:"path" placeholder:"FILE" help:"With --proof: compare the hashes of the blocks with those of your own node. The file contains its URL; the default is NAVLOG_EXPLAIN_RPC."`
	RPC       string `name:"rpc" secret:"--rpc-file FILE or NAVLOG_EXPLAIN_RPC" placeholder:"URL" help:"The node's URL, if it contains no key: other users of this machine can read it in the process list."`
	Mapping   string `default:"reference" placeholder:"FILE" help:"With --proof: the vault's mapping or description, as a file or the name of a preset."`
	JSON      bool   `name:"json" help:"Print JSON: a line for each log, and one with the result."`
}

type explainUserCmd struct {
	explainFlags
	Address string `arg:"" help:"Address of the user."`
	Number  string `arg:"" help:"Name of the number in the response of the API."`
}

func (cmd explainUserCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.explain(ctx, s, "/api/v1/users/"+cmd.Address, cmd.Number, "")
}

type explainVaultCmd struct {
	explainFlags
	Address string `arg:"" help:"Address of the vault."`
	Number  string `arg:"" help:"Name of the number in the response of the API."`
}

func (cmd explainVaultCmd) Run(ctx context.Context, s *cli.Streams) error {
	number := cmd.Number
	if number == "userCount" || number == "pendingWithdrawals" {
		number = "stats/" + number
	}
	return cmd.explain(ctx, s, "/api/v1/vaults/"+cmd.Address, number, "")
}

type explainSettlementCmd struct {
	explainFlags
	Vault  string `arg:"" help:"Address of the vault."`
	Number string `arg:"" help:"depositsToSweep/count or /totalAmount, withdrawalsToFund/count or /totalAmount."`
}

func (cmd explainSettlementCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.explain(ctx, s, "/api/v1/settlement/summary", cmd.Vault+"/"+cmd.Number, "")
}

type explainPartnerCmd struct {
	explainFlags
	keyFlags
	Number string `arg:"" help:"Name of the number in the response of the API."`
}

func (cmd explainPartnerCmd) Run(ctx context.Context, s *cli.Streams) error {
	key, err := cmd.key()
	if err != nil {
		return err
	}
	return cmd.explain(ctx, s, "/api/v1/partner/stats", cmd.Number, key)
}

// tries is how often a number that does not add up is read: the chain may have been reorganised between two responses.
const tries = 2

// explain shows the logs of a number and fails unless they add up to what the API shows.
func (f explainFlags) explain(ctx context.Context, s *cli.Streams, of, number, key string) error {
	public, err := api.New(api.Config{URL: f.URL, Key: key, Patient: true})
	if err != nil {
		return err
	}
	x := &explanation{explainFlags: f, api: public, of: of, field: "/" + strings.TrimPrefix(number, "/")}
	if (f.RPC != "" || f.RPCFile != "") && !f.Proof {
		return cli.Usage.With(errors.New("--rpc and --rpc-file name the node that confirms the hashes of proofs: give " +
			"--proof too"))
	}
	if f.Proof {
		node := cli.Node{RPC: f.RPC, File: f.RPCFile, Variable: "NAVLOG_EXPLAIN_RPC"}
		if x.RPC, err = node.URL(); err != nil {
			return err
		}
		if x.mapped, err = mappedBy(s, f.Mapping); err != nil {
			return err
		}
		if x.RPC != "" { // without one the reader compares the hashes
			if x.node, _, err = node.Dial(ctx); err != nil {
				return err
			}
			defer x.node.Close()
		}
	}
	if err := x.readUnit(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		// held back until the attempt is known to be final: otherwise the output could have a log of both attempts
		var output bytes.Buffer
		steps := console.Progress(f.Flags, s)
		x.out, x.report, x.titled = &output, steps.Report, false
		fault, err := x.readOnce(ctx)
		steps.End()
		if fault != nil {
			fault = fmt.Errorf("it does not add up: %s", cli.Printable(fault.Error()))
		}
		if fault != nil && try < tries {
			cli.Fprintf(s.Err, "navlog: %v: reading it again, because the chain may have been reorganised meanwhile\n", fault)
			continue
		}
		_, failed := output.WriteTo(s.Out)
		if err := errors.Join(err, failed); err != nil || fault == nil {
			return err
		}
		return cli.Different.With(fmt.Errorf("%w; `navlog verify` shows whether the read models match the log", fault))
	}
}

// unit is how a number is formatted; the zero value leaves it as it is.
type unit struct {
	decimals int
	symbol   string
}

// explainedEvent is a log as the API shows it. If proofs were requested, it has either Proof or Unproven.
type explainedEvent struct {
	client.ExplainedEvent
	Proof *explainedProof `json:"proof"` // shadows the embedded field, which cannot be verified
}

// outcome is the result of adding up the logs of a number.
type outcome struct {
	Of        string  `json:"of"`
	Field     string  `json:"field"`
	Block     string  `json:"block"`
	Operation string  `json:"operation"`
	Shown     *string `json:"shown"` // in the API's own response
	Sum       string  `json:"sum"`   // added up locally
	Logs      int64   `json:"logs"`
	Retracted int64   `json:"retracted"`
	AddsUp    bool    `json:"addsUp"`
	Proven    *int64  `json:"proven,omitempty"` // of Logs, with --proof
}

// counts matches the numbers without a unit.
var counts = regexp.MustCompile(`(?i)count$|^/totalDeposits$|^/uniqueUsers$|/pendingWithdrawals$`)

// lasts matches the numbers whose value is that of one log.
var lasts = regexp.MustCompile(`/(navPerShare|totalAssets|totalSupply|firstSeen)$`)

// operationOf returns how the logs combine to the number. It depends only on the name of the number: an API that could
// choose the operation could choose the result.
func operationOf(field string) string {
	switch {
	case counts.MatchString(field):
		return "count"
	case lasts.MatchString(field):
		return "last"
	}
	return "sum"
}

// Numbers by the kinds of logs that change them; the rest are changed by deposits.
var (
	navs     = regexp.MustCompile(`^/(navPerShare|totalAssets|totalSupply)$`)
	claims   = regexp.MustCompile(`/totalWithdrawn$`)
	firsts   = regexp.MustCompile(`/(firstSeen|userCount)$`)
	requests = regexp.MustCompile(`(?i)withdrawals`)
)

// kindsOf returns the effects that change a number, as in explain/numbers.go. Like operationOf, it does not rely on the
// API.
func kindsOf(field string) []mapping.Kind {
	switch {
	case navs.MatchString(field):
		return []mapping.Kind{mapping.Valuation}
	case claims.MatchString(field):
		return []mapping.Kind{mapping.Claimed, mapping.Instant}
	case firsts.MatchString(field):
		return []mapping.Kind{mapping.Deposit, mapping.Requested, mapping.Instant}
	case requests.MatchString(field):
		return []mapping.Kind{mapping.Requested}
	}
	return []mapping.Kind{mapping.Deposit}
}

// ofUsers matches the numbers that count users, with one log for each user.
var ofUsers = regexp.MustCompile(`/(userCount|uniqueUsers)$`)

// explainable is the maximum number of logs behind a number: the API does not page through more.
const explainable = 100_000

// add adds a log and returns what is wrong with it.
func (o *outcome) add(e *explainedEvent, sum *big.Int) error {
	change, isNumber := new(big.Int).SetString(e.Change, 10)
	switch {
	case e.State == "retracted" && e.Change == "0":
		o.Retracted++
		return nil
	case e.State != "live":
		return fmt.Errorf("the log of seq %s is %s, but changes the number by %s", e.Seq, e.State, e.Change)
	case o.Operation == "count" && e.Change != "1":
		return fmt.Errorf("the log of seq %s counts as %s instead of one", e.Seq, e.Change)
	case o.Operation == "last" && o.Logs > 0:
		return fmt.Errorf("the log of seq %s is the second one that contains the number", e.Seq)
	}
	o.Logs++
	if o.Sum = e.Change; isNumber {
		o.Sum = sum.Add(sum, change).String()
	}
	if e.Sum != o.Sum {
		return fmt.Errorf("up to seq %s the changes add up to %s, but the API reports %s", e.Seq, o.Sum, e.Sum)
	}
	return nil
}

// end compares the sum of the logs with the number that the API shows.
func (o *outcome) end(total int64) error {
	switch {
	case total != o.Logs+o.Retracted:
		return fmt.Errorf("the API reports %s, but shows %d", printable.Count(total, "log"), o.Logs+o.Retracted)
	case o.Shown == nil && o.Logs > 0:
		return fmt.Errorf("the response shows null, but its logs come to %s", o.Sum)
	case o.Shown != nil && o.Sum != *o.Shown:
		return fmt.Errorf("the response shows %s, but its logs come to %s", *o.Shown, o.Sum)
	}
	o.AddsUp = true
	return nil
}

// readOnce reads the number, and then its logs at the same block. fault describes what does not add up.
func (x *explanation) readOnce(ctx context.Context) (fault, err error) {
	o := outcome{Of: x.of, Field: x.field, Operation: operationOf(x.field), Sum: "0"}
	block, shown, err := x.number(ctx)
	if err != nil {
		return nil, err
	}
	o.Block, o.Shown = strconv.FormatInt(block, 10), shown
	sum := new(big.Int)
	prover := &prover{of: x.of, field: x.field, operation: o.Operation, asOf: big.NewInt(block),
		counted: map[common.Address]bool{}, node: x.node, rpc: x.RPC, mapped: x.mapped}
	if x.Proof {
		o.Proven = new(int64)
	}
	for page := 1; ; page++ {
		p, err := x.page(ctx, block, page)
		if err != nil {
			return nil, err
		}
		switch {
		case p.Data.Operation != o.Operation:
			return fmt.Errorf("the API reports the number as the %q of its logs, but it is their %s", p.Data.Operation,
				o.Operation), x.printResult(&o)
		case p.Meta.Total > explainable:
			return nil, fmt.Errorf("%s of %s consists of %d logs, but the API pages through only %d: it cannot be added up here",
				x.field, x.of, p.Meta.Total, explainable)
		}
		for _, raw := range p.Data.Events {
			x.report("logs of the number", uint64(o.Logs+o.Retracted), uint64(p.Meta.Total))
			var e explainedEvent
			if err := json.Unmarshal(raw, &e); err != nil {
				return nil, fmt.Errorf("read an event of the explanation: %w", err)
			}
			fault = o.add(&e, sum)
			proof := ""
			if x.Proof && fault == nil {
				if proof, fault, err = prover.proof(ctx, &e, o.Proven); err != nil {
					return nil, err
				}
			}
			if err := x.show(raw, &e, o.Operation, proof); err != nil {
				return nil, err
			}
			if fault != nil {
				return fault, x.printResult(&o)
			}
		}
		// It ends with an empty page, whatever total number of pages the API claims.
		if read := o.Logs + o.Retracted; !p.Meta.HasNextPage || len(p.Data.Events) == 0 || read > p.Meta.Total {
			fault = o.end(p.Meta.Total)
			return fault, x.printResult(&o)
		}
	}
}

// show prints one log.
func (x *explanation) show(raw json.RawMessage, e *explainedEvent, operation, proof string) (err error) {
	if x.JSON {
		return json.NewEncoder(x.out).Encode(raw) // on one line, however it was formatted
	}
	user, state, change := "-", "", x.unit.written(e.Change)
	if operation != "last" {
		change = "+" + change
	}
	if e.UserAddress != nil {
		user = *e.UserAddress
	}
	if e.RetractedBySeq != nil {
		state = "  retracted by seq " + *e.RetractedBySeq
	}
	index, tx := "-", "-" // for a sample
	if e.LogIndex != nil && e.TxHash != nil {
		index, tx = strconv.FormatUint(uint64(*e.LogIndex), 10), *e.TxHash
	}
	if !x.titled {
		x.titled = true
		if err := x.row("BLOCK", "INDEX", "SEQ", "KIND", "USER", "CHANGE", "SUM", "TRANSACTION"); err != nil {
			return err
		}
	}
	return x.row(e.BlockNumber, index, e.Seq, e.Kind, user, change, x.unit.written(e.Sum), tx+state+proof)
}

// row prints one line of the table. Its last cell may have any width.
func (x *explanation) row(block, index, seq, kind, user, change, sum, tx string) error {
	line := fmt.Sprintf("%-10s %-5s %-10s %-20s %-42s %24s %26s  %s", block, index, seq, kind, user, change, sum, tx)
	_, err := fmt.Fprintln(x.out, cli.Printable(line))
	return err
}

// printResult prints the result.
func (x *explanation) printResult(o *outcome) (err error) {
	if x.JSON {
		return json.NewEncoder(x.out).Encode(o)
	}
	shown, verdict := "null", "adds up"
	if o.Shown != nil {
		shown = *o.Shown
	}
	if !o.AddsUp {
		verdict = "DOES NOT ADD UP"
	}
	if o.Proven != nil {
		verdict = fmt.Sprintf("%s; %d of %s proven", verdict, *o.Proven, printable.Count(o.Logs, "log"))
		if x.node == nil {
			verdict += ": compare the hashes of their blocks elsewhere, or give --rpc-file"
		}
	}
	if readable := x.unit.written(shown); readable != shown {
		shown += " (" + readable + ")"
	}
	line := fmt.Sprintf("%s of %s at block %s is %s: the %s of %s, %d retracted shown: %s",
		x.field, x.of, o.Block, shown, o.Operation, printable.Count(o.Logs, "log"), o.Retracted, verdict)
	_, err = fmt.Fprintf(x.out, "\n%s\n", cli.Printable(line))
	return err
}

// written formats a value in whole units, with all of its digits; a value without a unit is unchanged.
func (u unit) written(value string) string {
	if u.decimals == 0 || value == "" || strings.Trim(value, "0123456789") != "" {
		return value
	}
	if missing := u.decimals + 1 - len(value); missing > 0 {
		value = strings.Repeat("0", missing) + value
	}
	at := len(value) - u.decimals
	return strings.TrimSpace(value[:at] + "." + value[at:] + " " + u.symbol)
}
