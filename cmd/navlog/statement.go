package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/input"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

// statementCmd is for partners as well as for operators: it needs no configuration.
type statementCmd struct {
	Get    statementGetCmd    `cmd:"" default:"withargs" help:"Ask the API for a signed statement of a span of time."`
	Verify statementVerifyCmd `cmd:"" help:"Make a statement again out of what a node of the chain says, and compare every byte."`
}

type statementGetCmd struct {
	URL string `name:"url" required:"" placeholder:"URL" help:"Address of the API, such as https://navlog.example."`
	keyFlags
	From    string        `required:"" placeholder:"TIME" help:"First time of the span, included: RFC 3339, or a date (UTC)."`
	To      string        `required:"" placeholder:"TIME" help:"Last time of the span, included; a date alone is the end of that day. Not after the newest final block."`
	Output  string        `short:"o" placeholder:"FILE" help:"Where to write it, instead of the screen. A file that exists is kept."`
	CSV     bool          `name:"csv" help:"Write its events as CSV, which cannot be verified: keep the statement itself."`
	Timeout time.Duration `default:"10m" help:"How long all of it may take."`
}

// Run fetches a statement, and gives it only when it is whole and its signature holds.
func (cmd statementGetCmd) Run(ctx context.Context, s *cli.Streams) error {
	key, err := cmd.key()
	if err != nil {
		return err
	}
	public, err := api.New(api.Config{URL: cmd.URL, Key: key, Within: cmd.Timeout, MaxBytes: maxStatement})
	if err != nil {
		return err
	}
	steps := progress(cli.Flags{}, s)
	steps.Tell("waiting for the statement", 0, 0)
	text, err := api.Text(public.GetStatement(ctx, &client.GetStatementParams{From: cmd.From, To: cmd.To}))
	steps.End()
	if err != nil {
		return err
	}
	d, err := statement.Parse(text)
	if err == nil && !d.Signed() {
		err = errors.New("its signature does not hold")
	}
	if err != nil {
		return fmt.Errorf("the statement that %s gave is not whole: %w; ask again", cmd.URL, err)
	}
	out, done, err := cmd.output(s.Out)
	if err != nil {
		return err
	}
	if cmd.CSV {
		err = writeCSV(out, d)
	} else {
		_, err = out.Write(text)
	}
	return errors.Join(err, done())
}

// maxStatement bounds what is read of a statement, in bytes: a million events and more.
const maxStatement = 2 << 30

// keyFlags are common to the commands that ask for what is a partner's.
type keyFlags struct {
	KeyFile string `placeholder:"FILE" help:"File with the partner's API key. Without it, NAVLOG_API_KEY has the key."`
}

// key is that of the partner: never an argument, for others can read those of a process.
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
		return "", cli.Usage.With(errors.New("there is no API key: give a file with it as --key-file, or set NAVLOG_API_KEY"))
	}
	return key, nil
}

func (cmd statementGetCmd) output(screen io.Writer) (out io.Writer, done func() error, err error) {
	if cmd.Output == "" {
		return cli.Data(screen), func() error { return nil }, nil
	}
	f, err := os.OpenFile(cmd.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("keep the statement: %w", err)
	}
	return f, f.Close, nil
}

// writeCSV writes the events of a statement, a line each. What both kinds have stands in
// one column: assets is the estimate of a withdrawal.
func writeCSV(out io.Writer, d *statement.Document) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"id", "type", "vaultAddress", "userAddress", "assets", "shares", "requestIndex", "blockNumber", "blockHash", "txHash", "logIndex", "timestamp"})
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
		for i := range row { // whoever signed the statement chose them
			row[i] = files.ForeignText(row[i])
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

type statementVerifyCmd struct {
	File    string `arg:"" type:"existingfile" help:"The statement."`
	RPCFile string `name:"rpc-file" type:"path" placeholder:"FILE" help:"File with the URL of any node of the chain that has its history, over HTTP: of whom you trust. Without it, NAVLOG_STATEMENT_RPC has the URL."`
	RPC     string `name:"rpc" secret:"--rpc-file FILE or NAVLOG_STATEMENT_RPC" placeholder:"URL" help:"The same with a URL that holds no key: others can read it in the list of processes."`
	Key     string `placeholder:"BASE64" xor:"key" help:"The public key that it must be signed by, as you know it from elsewhere."`
	URL     string `name:"url" placeholder:"URL" xor:"key" help:"Address of the API whose key it must be signed by: /.well-known/navlog-statements."`
	JSON    bool   `name:"json" help:"Write what was found as JSON."`
}

// verified is what a verification found.
type verified struct {
	ChainID   uint64 `json:"chainId"`
	PartnerID uint32 `json:"partnerId"`
	From      string `json:"from"`
	To        string `json:"to"`
	// Vaults, and the first block of each, are the word of the signer: no chain says which there must be.
	Vaults    []statement.Vault `json:"vaults"`
	Block     statement.Block   `json:"block"`
	Events    int               `json:"events"`
	PublicKey string            `json:"publicKey"`
	// KeyKnown: the key is the one that was asked for. Without one, whose it is remains
	// to be seen.
	KeyKnown bool            `json:"keyKnown"`
	Totals   json.RawMessage `json:"totals"`
}

// Run makes a statement again, and fails where a byte differs.
func (cmd statementVerifyCmd) Run(ctx context.Context, s *cli.Streams) error {
	node := cli.Secret{Flag: "--rpc", Given: cmd.RPC, File: cmd.RPCFile, Variable: "NAVLOG_STATEMENT_RPC"}
	rpc, err := node.Read()
	if err != nil {
		return err
	}
	if rpc == "" {
		return node.Missing("node of the chain")
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
		return cli.Different.With(fmt.Errorf("the signature of %s does not hold: it was changed after it was signed", cmd.File))
	}
	known, err := cmd.knows(ctx, d.PublicKey)
	if err != nil {
		return err
	}
	chain, err := ethclient.DialContext(ctx, rpc)
	if err != nil {
		return cli.Unreachable.With(fmt.Errorf("reach the node: %w", contracts.Discreet(err, rpc)))
	}
	defer chain.Close()
	same := &comparison{want: d.Body}
	steps := progress(cli.Flags{}, s)
	err = statement.Rebuild(ctx, same, d.Header, chain, func(done, of uint64) { steps.Tell("statement: blocks", done, of) })
	steps.End()
	var contradiction *statement.Contradiction
	switch {
	case errors.As(err, &contradiction), errors.Is(err, errDiffers):
		return cli.Different.With(fmt.Errorf("%s is not what the chain says: %w", cmd.File, err))
	case ctx.Err() != nil: // it was given up, and the node may well be there
		return cli.Failed.With(contracts.Discreet(err, rpc))
	case err != nil:
		return cli.Unreachable.With(contracts.Discreet(err, rpc))
	case len(same.want) > 0:
		return cli.Different.With(fmt.Errorf("%s is not what the chain says: it goes on with %s", cmd.File, excerpt(same.want)))
	}
	h := d.Header
	return cmd.print(s.Out, &verified{h.ChainID, h.PartnerID, h.From, h.To, h.Vaults, h.Block, len(d.Events), base64.StdEncoding.EncodeToString(d.PublicKey), known, d.Totals})
}

// knows tells whether a key is the one that it has to be.
func (cmd statementVerifyCmd) knows(ctx context.Context, key ed25519.PublicKey) (bool, error) {
	var keys [][]byte
	switch {
	case cmd.Key != "":
		want, err := base64.StdEncoding.DecodeString(cmd.Key)
		if err != nil {
			return false, cli.Usage.With(fmt.Errorf("--key is %q and no base64", cmd.Key))
		}
		keys = [][]byte{want}
	case cmd.URL != "":
		public, err := api.New(api.Config{URL: cmd.URL})
		if err != nil {
			return false, err
		}
		answer, err := api.Read[struct{ Data struct{ PublicKeys [][]byte } }](public.GetStatementKeys(ctx))
		if err != nil {
			return false, err
		}
		keys = answer.Is.Data.PublicKeys
	default:
		return false, nil
	}
	if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
		return false, cli.Different.With(fmt.Errorf("%s is signed by the key %s, which is not the one that it has to be", cmd.File, base64.StdEncoding.EncodeToString(key)))
	}
	return true, nil
}

// errDiffers says that what is made anew is not what was signed.
var errDiffers = errors.New("the statement differs")

// comparison takes what is written for what is left of want.
type comparison struct{ want []byte }

func (c *comparison) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(c.want, b) {
		return 0, fmt.Errorf("%w: it has %s, and the chain says %s", errDiffers, excerpt(c.want), excerpt(b))
	}
	c.want = c.want[len(b):]
	return len(b), nil
}

// excerpt is the first line of some text, in quotes.
func excerpt(text []byte) string {
	first, _, _ := bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n"))
	return strconv.Quote(string(first[:min(len(first), 400)]))
}

func (cmd statementVerifyCmd) print(out io.Writer, v *verified) error {
	if cmd.JSON {
		return json.NewEncoder(out).Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	cli.Fprintf(w, "The statement is what the chain says, byte for byte.\n\nchain\t%d\npartner\t%d\nspan\t%s to %s\nmade at\tblock %s, %s\nevents\t%d\n",
		v.ChainID, v.PartnerID, v.From, v.To, v.Block.Number, v.Block.Hash, v.Events)
	trust := "which is the one that it has to be"
	if !v.KeyKnown {
		trust = "see whose it is: --key, --url"
	}
	cli.Fprintf(w, "signed by\t%s, %s\n", v.PublicKey, trust)
	var totals []struct {
		VaultAddress   string `json:"vaultAddress"`
		Deposits       int64  `json:"deposits"`
		Assets         string `json:"assets"`
		Withdrawals    int64  `json:"withdrawals"`
		AssetsEstimate string `json:"assetsEstimate"`
	}
	if err := json.Unmarshal(v.Totals, &totals); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nVAULT\tFROM BLOCK\tDEPOSITS\tASSETS\tWITHDRAWALS\tESTIMATE")
	for i, t := range totals { // which are in the order of the vaults
		cli.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", t.VaultAddress, v.Vaults[i].StartBlock, t.Deposits, t.Assets, t.Withdrawals, t.AssetsEstimate)
	}
	return w.Flush()
}
