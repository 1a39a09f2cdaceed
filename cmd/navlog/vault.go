package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Vaults are in the log, which only ingest writes: these commands leave a row for ingest, and wait for the outcome.

type vaultCmd struct {
	Add     vaultAddCmd     `cmd:"" help:"Add a vault to a running system: ingest reads it from its start block on, and responses include it with the next generation."`
	Detect  vaultDetectCmd  `cmd:"" help:"Examine a contract through a node and propose a preset, with the evidence. Nothing is stored."`
	Remove  vaultRemoveCmd  `cmd:"" help:"Remove a vault from the API and its totals, from the next generation on; its history stays in the log."`
	Restore vaultRestoreCmd `cmd:"" help:"Restore a removed vault: ingest continues from the last block that it read for it."`
}

// stdin is where confirmations are read from.
var stdin io.Reader = os.Stdin

type vaultFlags struct {
	ingestFlags
	Address string `arg:"" help:"Address of the vault."`
}

// order leaves a command about the vault for ingest.
func (f vaultFlags) order(ctx context.Context, s *cli.Streams, kind, argument, effect string) error {
	vault, err := vaultAddress(f.Address)
	if err != nil {
		return err
	}
	return f.ingestFlags.order(ctx, s,
		ingestOrder{kind: kind, action: "vault " + kind, vault: vault, argument: argument, what: kind, effect: effect})
}

// ingestFlags are shared by the commands that ingest executes.
type ingestFlags struct {
	changeFlags
	Yes  bool          `short:"y" help:"Do not ask for confirmation."`
	Wait time.Duration `default:"10s" help:"How long to wait until ingest executes it; 0: do not wait. ingest executes it in any case."`
}

// ingestOrder is a command about a vault, to be left for ingest.
type ingestOrder struct {
	kind, argument string
	vault          common.Address
	action         string // command name in the audit
	partner        int64  // the partner concerned; 0 for none
	what, effect   string // for people: the action on the vault, and its effect
}

// vaultAddress parses the address of a vault.
func vaultAddress(text string) (common.Address, error) {
	if !common.IsHexAddress(text) || !strings.HasPrefix(text, "0x") {
		return common.Address{}, cli.Usage.With(fmt.Errorf("%q is not an address: it must be 0x and 40 hex digits", text))
	}
	return common.HexToAddress(text), nil
}

type vaultRemoveCmd struct{ vaultFlags }

func (cmd vaultRemoveCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.order(ctx, s, registry.RemoveVault, "",
		"From the next generation on, no response contains it, no total of a user or a partner includes its amounts, and "+
			"its queue is not shown.")
}

type vaultRestoreCmd struct{ vaultFlags }

func (cmd vaultRestoreCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.order(ctx, s, registry.RestoreVault, "",
		"Ingest reads it from where it stopped, and the generation after that contains all of it, with its amounts in "+
			"every total.")
}

type vaultAddCmd struct {
	vaultFlags
	StartBlock    uint64   `required:"" placeholder:"BLOCK" help:"The block that created it: no earlier block has a log of it."`
	Mapping       string   `default:"reference" placeholder:"FILE" help:"What its logs mean: the name of a preset, or a file (with a slash, or .yaml at its end)."`
	Source        []string `sep:"none" placeholder:"ROLE=ADDRESS" help:"Another contract of the vault, by its role in the mapping; may be given several times. ROLE=ADDRESS,topic1=VALUE for one that several vaults share."`
	Name          string   `placeholder:"NAME" help:"Display name (default: the contract's name())."`
	Symbol        string   `placeholder:"SYMBOL" help:"Symbol of the shares (default: the contract's symbol())."`
	Decimals      *uint8   `placeholder:"N" help:"Decimals of the shares (default: the contract's decimals())."`
	Asset         string   `placeholder:"ADDRESS" help:"What the vault holds (default: the contract's asset())."`
	AssetSymbol   string   `placeholder:"SYMBOL" help:"Symbol of the asset (default: its symbol())."`
	AssetDecimals *uint8   `placeholder:"N" help:"Decimals of the asset (default: its decimals())."`
}

// Run adds a vault. The command contains its mapping, because the file may exist only on this machine.
func (cmd vaultAddCmd) Run(ctx context.Context, s *cli.Streams) error {
	v := vaults.Config{Address: cmd.Address, StartBlock: cmd.StartBlock, Mapping: cmd.Mapping, Name: cmd.Name,
		Symbol: cmd.Symbol, Decimals: cmd.Decimals,
		Asset:   vaults.AssetConfig{Address: cmd.Asset, Symbol: cmd.AssetSymbol, Decimals: cmd.AssetDecimals},
		Sources: map[string]vaults.SourceConfig{}}
	for _, given := range cmd.Source {
		role, rest, _ := strings.Cut(given, "=")
		address, filters, _ := strings.Cut(rest, ",")
		source := vaults.SourceConfig{Address: address}
		for filter := range strings.SplitSeq(filters, ",") {
			name, value, _ := strings.Cut(filter, "=")
			switch name {
			case "":
			case "topic1":
				source.Topic1 = value
			case "topic2":
				source.Topic2 = value
			case "topic3":
				source.Topic3 = value
			default:
				return cli.Usage.With(fmt.Errorf("--source is %q and must be ROLE=ADDRESS, followed by ,topic1=VALUE (or "+
					"topic2, topic3) for a shared contract", given))
			}
		}
		v.Sources[role] = source
	}
	argument, err := v.Encode()
	if err != nil { // its words are those of the configuration
		words := strings.NewReplacer("chain.vaults[0]: unknown preset", "--mapping: unknown preset",
			"chain.vaults[0].address", "the vault's address", "chain.vaults[0]", "vault "+cmd.Address)
		return cli.Usage.With(errors.New(words.Replace(err.Error())))
	}
	return cmd.order(ctx, s, registry.AddVault, argument,
		"It is read from its start block on, and the next generation has it, with its amounts in every total.")
}

// vaultOrder is the outcome of a command about a vault.
type vaultOrder struct {
	Command int64  `json:"command"`
	Vault   string `json:"vault"`
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"` // done or refused; empty while pending
	Detail  string `json:"detail,omitempty"`
	what    string // the kind, for people
}

// order leaves a command for ingest, waits for it, and prints the outcome.
func (f ingestFlags) order(ctx context.Context, s *cli.Streams, given ingestOrder) error {
	return f.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		if !f.Yes {
			if err := confirm(ctx, s,
				fmt.Sprintf("%s vault %s of chain %d. %s\n", given.what, given.vault, c.Chain.ID, given.effect)); err != nil {
				return err
			}
		}
		o, err := f.submit(ctx, s, pool, c, given)
		if err != nil {
			return err
		}
		return errors.Join(f.Print(s.Out, o, o.write), o.refusal())
	}, config.NeedChainID)
}

// submit leaves a command for ingest, and waits for its outcome.
func (f ingestFlags) submit(
	ctx context.Context, s *cli.Streams, pool *pgxpool.Pool, c config.Config, given ingestOrder,
) (vaultOrder, error) {
	o := vaultOrder{Vault: given.vault.Hex(), Kind: given.kind, what: given.what}
	err := registry.Change(ctx, pool, f.operator(), func(q *db.Queries) (_ registry.Action, err error) {
		if given.partner != 0 {
			if _, err := q.GetPartner(ctx, given.partner); err != nil {
				return registry.Action{}, unknownPartner(given.partner, err)
			}
		}
		o.Command, err = q.AddVaultCommand(ctx,
			db.AddVaultCommandParams{ChainID: int64(c.Chain.ID), Kind: given.kind, Vault: given.vault[:],
				Argument: []byte(given.argument)})
		if err != nil {
			return registry.Action{}, fmt.Errorf("store a command about vault %s: %w", given.vault, err)
		}
		detail := fmt.Sprintf("chain %d, vault %s, command %d", c.Chain.ID, given.vault, o.Command)
		if given.what != given.kind {
			detail = given.what + " " + detail
		}
		return registry.Action{Command: given.action, Partner: given.partner, Detail: detail}, nil
	})
	if err != nil {
		return o, err
	}
	q := db.New(pool)
	f.waitUntilDone(ctx, s, f.Wait, func(ctx context.Context, steps *console.Steps) (bool, error) {
		steps.Report(fmt.Sprintf("waiting for ingest to execute command %d", o.Command), 0, 0)
		row, err := q.VaultCommand(ctx, o.Command)
		if err != nil {
			return false, fmt.Errorf("read command %d: %w", o.Command, err)
		}
		o.Outcome, o.Detail = row.Outcome, row.Detail
		return o.Outcome != "", nil
	})
	return o, nil
}

// refusal returns why ingest rejected the command; nil if it did not.
func (o vaultOrder) refusal() error {
	if o.Outcome != registry.CommandRefused {
		return nil
	}
	return fmt.Errorf("command %d about vault %s was rejected: %s", o.Command, o.Vault, cli.Printable(o.Detail))
}

func (o vaultOrder) write(w io.Writer) {
	switch o.Outcome {
	case registry.CommandRefused: // an error
	case "":
		cli.Fprintf(w, "%s vault %s is queued as command %d: a running ingest executes it, but not while it is frozen "+
			"(`navlog status`)\n", o.what, o.Vault, o.Command)
	default:
		cli.Fprintf(w, "%s vault %s: done, %s\n", o.what, o.Vault, o.Detail)
	}
}
