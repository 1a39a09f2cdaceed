package partner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/input"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

// Statement is for partners as well as operators: it needs no configuration.
type Statement struct {
	Get    statementGetCmd    `cmd:"" default:"withargs" help:"Get a signed statement of a time range from the API."`
	Verify statementVerifyCmd `cmd:"" help:"Build a statement again from a node's responses, and compare every byte."`
}

type statementGetCmd struct {
	URL string `name:"url" required:"" placeholder:"URL" help:"Address of the API, such as https://navlog.example."`
	keyFlags
	From    string        `required:"" placeholder:"TIME" help:"Start of the time range, included: RFC 3339, or a date (UTC)."`
	To      string        `required:"" placeholder:"TIME" help:"End of the time range, included: RFC 3339, or a date for the end of that day. Not after the newest final block."`
	Output  string        `short:"o" placeholder:"FILE" help:"File to write instead of the screen. An existing file is not overwritten."`
	CSV     bool          `name:"csv" help:"Write the events as CSV, which cannot be verified: keep the statement itself."`
	Timeout time.Duration `default:"10m" range:"1s to 24h" help:"Time limit for the whole command, 1s to 24h."`
}

// Run fetches a statement, and writes it only if it is complete and its signature is valid.
func (cmd statementGetCmd) Run(ctx context.Context, s *cli.Streams) error {
	key, err := cmd.key()
	if err != nil {
		return err
	}
	public, err := api.New(api.Config{URL: cmd.URL, Key: key, Within: cmd.Timeout, MaxBytes: maxStatement})
	if err != nil {
		return err
	}
	steps := console.Progress(cli.Flags{}, s)
	steps.Report("waiting for the statement", 0, 0)
	text, err := api.Text(public.Get(ctx, "/api/v1/partner/statement", url.Values{"from": {cmd.From}, "to": {cmd.To}}))
	steps.End()
	if err != nil {
		return err
	}
	d, err := statement.Parse(text)
	if err == nil && !d.Signed() {
		err = errors.New("its signature is not valid")
	}
	if err != nil {
		return fmt.Errorf("the statement from %s is not complete: %w; run this again", cmd.URL, err)
	}
	if cmd.CSV {
		var lines bytes.Buffer
		if err := writeCSV(&lines, d); err != nil {
			return err
		}
		text = lines.Bytes()
	}
	return cmd.keep(s.Out, text)
}

// maxStatement is the maximum size of a statement, in bytes: enough for more than a million events.
const maxStatement = 2 << 30

// keyFlags are shared by the commands that request a partner's data.
type keyFlags struct {
	KeyFile string `placeholder:"FILE" help:"File with the partner's API key (default: the key in NAVLOG_API_KEY)."`
}

// key returns the partner's API key. It is never an argument, because other users can read the arguments of a process.
func (f keyFlags) key() (string, error) {
	key := os.Getenv("NAVLOG_API_KEY")
	if f.KeyFile != "" {
		b, err := os.ReadFile(f.KeyFile)
		if err != nil {
			return "", cli.Usage.With(fmt.Errorf("read the API key: %w", err))
		}
		key = string(b)
	}
	key, err := input.Word(key)
	if err != nil {
		return "", cli.Usage.With(fmt.Errorf("the API key %w", err))
	}
	if key == "" {
		return "", cli.Usage.With(errors.New("there is no API key: pass a file with it as --key-file, or set NAVLOG_API_KEY"))
	}
	return key, nil
}

// keep writes to the file or the screen. A file that cannot be completed, as on a full disk, is removed.
func (cmd statementGetCmd) keep(screen io.Writer, text []byte) error {
	if cmd.Output == "" {
		_, err := cli.Data(screen).Write(text)
		return err
	}
	f, err := os.OpenFile(cmd.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(cmd.Output))
		}
	}
	if err != nil {
		return fmt.Errorf("keep the statement (-o overwrites no file): %w", err)
	}
	return nil
}

// writeCSV writes the events of a statement, one per line. Both kinds share their columns: for a withdrawal, assets is
// the estimate.
func writeCSV(out io.Writer, d *statement.Document) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"id", "type", "vaultAddress", "userAddress", "assets", "shares", "requestIndex", "blockNumber",
		"blockHash", "txHash", "logIndex", "timestamp"})
	for _, e := range d.Events {
		var one struct {
			webhook.WithdrawalData
			Assets string `json:"assets"`
		}
		if err := json.Unmarshal(e.Data, &one); err != nil {
			return fmt.Errorf("event %s of the statement: %w", e.ID, err)
		}
		assets := one.Assets
		if e.Type == webhook.WithdrawalReferral {
			assets = one.AssetsEstimate
		}
		row := []string{e.ID.String(), e.Type, one.VaultAddress, one.UserAddress, assets, one.Shares, one.RequestIndex,
			one.BlockNumber, e.BlockHash, one.TxHash, strconv.FormatUint(uint64(one.LogIndex), 10), one.Timestamp}
		for i := range row { // the signer of the statement chose these texts
			row[i] = printable.Cell(row[i])
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

type statementVerifyCmd struct {
	File     string   `arg:"" type:"existingfile" help:"The statement."`
	RPCFile  string   `name:"rpc-file" type:"path" placeholder:"FILE" help:"File with the HTTP URL of a node of the chain that has its history and that you trust (default: the URL in NAVLOG_STATEMENT_RPC)."`
	RPC      string   `name:"rpc" secret:"--rpc-file FILE or NAVLOG_STATEMENT_RPC" placeholder:"URL" help:"The node's URL, if it contains no key: other users of this machine can read it in the process list."`
	Key      string   `placeholder:"BASE64" xor:"key" help:"The public key that must have signed it, as you know it from another source."`
	KeysFrom string   `placeholder:"FILE" xor:"key" help:"File with the keys that may have signed it: a response of /.well-known/navlog-statements, or one key a line."`
	URL      string   `name:"url" placeholder:"URL" xor:"key" help:"Address of the API whose key must have signed it: /.well-known/navlog-statements."`
	Partner  uint32   `placeholder:"ID" help:"The partner that it must be for."`
	Vault    []string `placeholder:"ADDRESS" help:"A vault that it must contain; may be repeated."`
	Ignore   []string `placeholder:"ADDRESS" help:"A contract that emits events for the partner and is not a vault; may be repeated."`
	Mapping  []string `type:"existingfile" placeholder:"FILE" help:"A mapping that the statement names and that is not a preset; may be repeated."`
	cli.Output
}

// verified is the result of a verification.
type verified struct {
	Verified bool `json:"verified"`
	// Unproven lists what could not be compared; empty if the statement is verified.
	Unproven  []string `json:"unproven"`
	ChainID   uint64   `json:"chainId"`
	PartnerID uint32   `json:"partnerId"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	// Vaults, with their first blocks, mappings and aliases, are claims of the signer: the chain does not prove which
	// vaults belong in a statement.
	Vaults []statement.Vault `json:"vaults"`
	// LeftOut are the chain's events for the partner in the range that the statement does not have.
	LeftOut   []statement.LeftOut `json:"leftOut"`
	Block     statement.Block     `json:"block"`
	Events    int                 `json:"events"`
	PublicKey string              `json:"publicKey"`
	// KeyKnown reports whether the key is one of those that were given. Otherwise the signer is unknown.
	KeyKnown     bool            `json:"keyKnown"`
	KeyRetiredAt *time.Time      `json:"keyRetiredAt,omitempty"`
	Totals       json.RawMessage `json:"totals"`
}

// Run rebuilds a statement. It fails with Different if a byte differs, and with Unproven if all bytes are equal but the
// signer is unknown or vaults may be missing.
func (cmd statementVerifyCmd) Run(ctx context.Context, s *cli.Streams) error {
	vaults, err := addresses("--vault", cmd.Vault)
	if err != nil {
		return err
	}
	ignored, err := addresses("--ignore", cmd.Ignore)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(cmd.File)
	if err != nil {
		return fmt.Errorf("read the statement: %w", err)
	}
	d, err := statement.Parse(text)
	if err != nil {
		return cli.Different.With(fmt.Errorf("%s is not what navlog signs: %w", cmd.File, err))
	}
	if !d.Signed() {
		return cli.Different.With(fmt.Errorf("the signature of %s is not valid: it was changed after it was signed",
			cmd.File))
	}
	signer, err := cmd.signer(ctx, d)
	if err != nil {
		return err
	}
	if cmd.Partner != 0 && cmd.Partner != d.Header.PartnerID {
		return cli.Different.With(fmt.Errorf("%s is for partner %d, and must be for partner %d",
			cmd.File, d.Header.PartnerID, cmd.Partner))
	}
	for _, v := range vaults {
		if !slices.ContainsFunc(d.Header.Vaults, func(of statement.Vault) bool { return of.Address == v }) {
			return cli.Different.With(fmt.Errorf("%s does not have vault %s, which it must have", cmd.File, v))
		}
	}
	found, err := cmd.compare(ctx, s, d)
	if err != nil {
		return err
	}
	h := d.Header
	v := &verified{ChainID: h.ChainID, PartnerID: h.PartnerID, From: h.From, To: h.To, Vaults: h.Vaults,
		LeftOut: []statement.LeftOut{}, Block: h.Block, Events: len(d.Events),
		PublicKey: base64.StdEncoding.EncodeToString(d.PublicKey), Totals: d.Totals}
	if signer != nil {
		v.KeyKnown, v.KeyRetiredAt = true, signer.retiredAt
	}
	for _, l := range found.LeftOut {
		if !slices.Contains(ignored, l.Address) {
			v.LeftOut = append(v.LeftOut, l)
		}
	}
	v.Unproven = unproven(v, found)
	v.Verified = len(v.Unproven) == 0
	if err := cmd.print(s.Out, v); err != nil || v.Verified {
		return err
	}
	return cli.Unproven.With(fmt.Errorf("%s is not verified: %s", cmd.File, strings.Join(v.Unproven, "; ")))
}

// addresses parses the addresses of a flag, and formats them as statements do.
func addresses(flag string, texts []string) (out []string, err error) {
	for _, text := range texts {
		if !common.IsHexAddress(text) {
			return nil, cli.Usage.With(fmt.Errorf("%s is %q and must be an address: 0x and 40 hex digits", flag, text))
		}
		out = append(out, common.HexToAddress(text).Hex())
	}
	return out, nil
}

// compare rebuilds a statement from a node's responses, and compares every byte.
func (cmd statementVerifyCmd) compare(ctx context.Context, s *cli.Streams,
	d *statement.Document) (*statement.Findings, error) {
	chain, rpc, err := cli.Node{RPC: cmd.RPC, File: cmd.RPCFile, Variable: "NAVLOG_STATEMENT_RPC"}.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer chain.Close()
	texts, err := cmd.mappings()
	if err != nil {
		return nil, err
	}
	same := &comparison{want: d.Body}
	steps := console.Progress(cli.Flags{}, s)
	found, err := statement.Rebuild(ctx, same, d.Header, chain, texts,
		func(done, of uint64) { steps.Report("statement: blocks", done, of) })
	steps.End()
	var contradiction *statement.Contradiction
	var unknown *statement.UnknownMapping
	switch {
	case errors.As(err, &unknown):
		return nil, cli.Usage.With(fmt.Errorf("%w: pass its file as --mapping", err))
	case errors.As(err, &contradiction), errors.Is(err, errDiffers):
		return nil, cli.Different.With(fmt.Errorf("%s does not match the chain: %w", cmd.File, err))
	case err != nil:
		return nil, cli.Unreachable.With(contracts.Discreet(err, rpc))
	case len(same.want) > 0:
		return nil, cli.Different.With(fmt.Errorf("%s does not match the chain: it continues with %s",
			cmd.File, excerpt(same.want)))
	}
	return found, nil
}

// mappings are the presets, and those of --mapping.
func (cmd statementVerifyCmd) mappings() (statement.Texts, error) {
	texts, err := statement.BuiltIn()
	if err != nil {
		return nil, err
	}
	for _, file := range cmd.Mapping {
		text, err := cli.ReadMapping(file)
		if err != nil {
			return nil, err
		}
		if err := texts.Add(file, text); err != nil {
			return nil, cli.Usage.With(err)
		}
	}
	return texts, nil
}

// unproven lists, one sentence each, the reasons why a statement that matches the chain is not verified.
func unproven(v *verified, found *statement.Findings) (out []string) {
	out = []string{}
	if !v.KeyKnown {
		out = append(out, "the signer is unknown: anyone can sign,"+
			" so pass the key that must have signed it as --key, --keys-from or --url")
	}
	if len(v.Vaults) == 0 {
		out = append(out, "it names no vault")
	}
	for _, l := range v.LeftOut {
		events := printable.Count(l.Events, "event")
		if l.StartBlock != "" {
			out = append(out, fmt.Sprintf("it has vault %s from block %s on, and the chain has %s for the partner before"+
				" it in the range", l.Address, l.StartBlock, events))
			continue
		}
		out = append(out, fmt.Sprintf("it does not have contract %s, which has %s for the partner in the range:"+
			" if that is not a vault, pass it as --ignore", l.Address, events))
	}
	if found.Blocks == 0 {
		out = append(out, "no block is in its range")
	}
	if found.Pending {
		out = append(out, fmt.Sprintf("block %s, at which it was made, is not final yet according to the node",
			v.Block.Number))
	}
	return out
}

// errDiffers reports that the rebuilt statement is not the signed one.
var errDiffers = errors.New("the statement differs")

// comparison is a writer that compares what is written with the rest of want.
type comparison struct{ want []byte }

func (c *comparison) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(c.want, b) {
		return 0, fmt.Errorf("%w: it has %s, but the chain has %s", errDiffers, excerpt(c.want), excerpt(b))
	}
	c.want = c.want[len(b):]
	return len(b), nil
}

// excerpt returns the first line of a text, in quotes.
func excerpt(text []byte) string {
	first, _, _ := bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n"))
	return strconv.Quote(string(first[:min(len(first), 400)]))
}

func (cmd statementVerifyCmd) print(out io.Writer, v *verified) error {
	var totals []total
	if err := json.Unmarshal(v.Totals, &totals); err != nil {
		return err
	}
	return cmd.Print(out, v, func(w io.Writer) { v.write(w, totals) })
}

// total is the sum of the events of a vault, as in a statement.
type total struct {
	VaultAddress   string `json:"vaultAddress"`
	Deposits       int64  `json:"deposits"`
	Assets         string `json:"assets"`
	Withdrawals    int64  `json:"withdrawals"`
	AssetsEstimate string `json:"assetsEstimate"`
}

// write prints a result for people. totals are in the order of the vaults.
func (v *verified) write(w io.Writer, totals []total) {
	verdict := "VERIFIED: the statement matches the chain, byte for byte, and is signed by a known key"
	if !v.Verified {
		verdict = "NOT VERIFIED: " + v.Unproven[0]
	}
	cli.Fprintf(w, "%s.\n\nproven\tits events, totals and root match the chain, byte for byte,"+
		" for its vaults from their first blocks on\n", verdict)
	for _, reason := range v.Unproven {
		cli.Fprintf(w, "not proven\t%s\n", reason)
	}
	cli.Fprintf(w, "\nchain\t%d\npartner\t%d\ntime range\t%s to %s\nas of\tblock %s, %s\nevents\t%d\n",
		v.ChainID, v.PartnerID, v.From, v.To, v.Block.Number, v.Block.Hash, v.Events)
	trust := "an unknown key"
	switch {
	case v.KeyRetiredAt != nil:
		trust = "a known key, retired at " + v.KeyRetiredAt.UTC().Format(time.RFC3339)
	case v.KeyKnown:
		trust = "a known key"
	}
	cli.Fprintf(w, "signed by\t%s, %s\n", v.PublicKey, trust)
	for _, vault := range v.Vaults {
		for _, value := range vault.Aliases {
			cli.Fprintf(w, "claimed\t%s names the partner in vault %s, according to the signer\n",
				mapping.AttributionText(value), vault.Address)
		}
	}
	fmt.Fprintln(w, "\nVAULT\tFROM BLOCK\tDEPOSITS\tASSETS\tWITHDRAWALS\tESTIMATE")
	for i, t := range totals {
		cli.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", t.VaultAddress, v.Vaults[i].StartBlock, t.Deposits, t.Assets,
			t.Withdrawals, t.AssetsEstimate)
	}
}
