package main

import (
	"bufio"
	"context"
	"encoding/json"
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
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Vaults are in the log, which only ingest writes: these commands leave a row for it, and wait
// for what comes of it.

type vaultCmd struct {
	Add     vaultAddCmd     `cmd:"" help:"Add a vault to a running system: it is read from its start block on, and is in the answers with the next generation."`
	Detect  vaultDetectCmd  `cmd:"" help:"Look at a contract through a node and propose a preset, with the evidence. Nothing is stored."`
	Remove  vaultRemoveCmd  `cmd:"" help:"Remove a vault from the API and its totals, from the next generation on; its history stays in the log."`
	Restore vaultRestoreCmd `cmd:"" help:"Restore a removed vault: ingest continues from the last block that it read for it."`
}

// stdin is where a confirmation is read from.
var stdin io.Reader = os.Stdin

type vaultFlags struct {
	changeFlags
	Address string        `arg:"" help:"Address of the vault."`
	Yes     bool          `short:"y" help:"Do not ask for confirmation."`
	Wait    time.Duration `default:"10s" help:"How long to wait until ingest executes it; 0: do not wait. ingest executes it in any case."`
}

type vaultRemoveCmd struct{ vaultFlags }

// Run removes a vault.
func (cmd vaultRemoveCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.order(ctx, s, registry.RemoveVault, "",
		"From the next generation on it is in no answer, its amounts are in no total of a user or a partner, and what waits in its queue is not shown.")
}

type vaultRestoreCmd struct{ vaultFlags }

// Run brings a vault back.
func (cmd vaultRestoreCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.order(ctx, s, registry.RestoreVault, "",
		"It is read from where it stopped, and the generation after that has all of it, with its amounts in every total.")
}

type vaultAddCmd struct {
	vaultFlags
	StartBlock    uint64   `required:"" placeholder:"BLOCK" help:"The block that created it: no earlier block has a log of it."`
	Mapping       string   `default:"reference" placeholder:"FILE" help:"What its logs mean: the name of a preset, or a file (with a slash, or .yaml at its end)."`
	Source        []string `sep:"none" placeholder:"ROLE=ADDRESS" help:"Another contract of the vault, by its role in the mapping; may be given several times. ROLE=ADDRESS,topic1=VALUE for one that several vaults share."`
	Name          string   `help:"Display name (default: the contract's name())."`
	Symbol        string   `help:"Default: the contract's symbol()."`
	Decimals      *uint8   `help:"Default: the contract's decimals()."`
	Asset         string   `placeholder:"ADDRESS" help:"What the vault holds (default: the contract's asset())."`
	AssetSymbol   string   `help:"Default: the asset's symbol()."`
	AssetDecimals *uint8   `help:"Default: the asset's decimals()."`
}

// Run adds a vault. Its mapping travels with the command, for the file may be on this machine only.
func (cmd vaultAddCmd) Run(ctx context.Context, s *cli.Streams) error {
	v := ingest.VaultConfig{Address: cmd.Address, StartBlock: cmd.StartBlock, Mapping: cmd.Mapping, Name: cmd.Name, Symbol: cmd.Symbol, Decimals: cmd.Decimals,
		Asset: ingest.AssetConfig{Address: cmd.Asset, Symbol: cmd.AssetSymbol, Decimals: cmd.AssetDecimals}, Sources: map[string]ingest.SourceConfig{}}
	for _, given := range cmd.Source {
		role, rest, _ := strings.Cut(given, "=")
		address, filters, _ := strings.Cut(rest, ",")
		source := ingest.SourceConfig{Address: address}
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
				return cli.Usage.With(fmt.Errorf("--source is %q and must be ROLE=ADDRESS, with ,topic1=VALUE (or topic2, topic3) behind it for a shared contract", given))
			}
		}
		v.Sources[role] = source
	}
	argument, err := v.Encode()
	if err != nil {
		return cli.Usage.With(err)
	}
	return cmd.order(ctx, s, registry.AddVault, argument,
		"It is read from its start block on, and the next generation has it, with its amounts in every total.")
}

// vaultOrder is what became of a command about a vault.
type vaultOrder struct {
	Command int64  `json:"command"`
	Vault   string `json:"vault"`
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"` // done, refused; empty: ingest has not done it yet
	Detail  string `json:"detail,omitempty"`
}

// order leaves a command for ingest, waits for it, and says what became of it.
func (f vaultFlags) order(ctx context.Context, s *cli.Streams, kind, argument, effect string) error {
	if !common.IsHexAddress(f.Address) || !strings.HasPrefix(f.Address, "0x") {
		return cli.Usage.With(fmt.Errorf("%q is no address: it must be 0x and 40 hex digits", f.Address))
	}
	vault := common.HexToAddress(f.Address)
	return f.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		if !f.Yes {
			fmt.Fprintf(s.Err, "%s vault %s of chain %d. %s\nType yes to go on: ", kind, vault, c.Chain.ID, effect)
			if answer, _ := bufio.NewReader(stdin).ReadString('\n'); strings.TrimSpace(answer) != "yes" {
				return cli.Usage.With(errors.New("nothing was changed: type yes, or give --yes"))
			}
		}
		o := vaultOrder{Vault: vault.Hex(), Kind: kind}
		err := registry.Change(ctx, pool, f.operator(), func(q *db.Queries) (_ registry.Deed, err error) {
			o.Command, err = q.AddVaultCommand(ctx, db.AddVaultCommandParams{ChainID: int64(c.Chain.ID), Kind: kind, Vault: vault[:], Argument: []byte(argument)})
			if err != nil {
				return registry.Deed{}, fmt.Errorf("leave a command about vault %s: %w", vault, err)
			}
			return registry.Deed{Command: "vault " + kind, Detail: fmt.Sprintf("chain %d, vault %s, command %d", c.Chain.ID, vault, o.Command)}, nil
		})
		if err != nil {
			return err
		}
		steps := progress(f.Flags, s)
		steps.Tell(fmt.Sprintf("waiting for ingest to carry out command %d", o.Command), 0, 0)
		err = f.await(ctx, db.New(pool), &o)
		steps.End()
		if err != nil {
			return err
		}
		return f.report(s, o)
	}, config.NeedChainID)
}

// await waits until ingest has an outcome, or the time is over.
func (f vaultFlags) await(ctx context.Context, q *db.Queries, o *vaultOrder) error {
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		row, err := q.VaultCommand(ctx, o.Command)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read command %d: %w", o.Command, err)
		}
		if o.Outcome, o.Detail = row.Outcome, row.Detail; o.Outcome != "" {
			return nil
		}
	}
}

func (f vaultFlags) report(s *cli.Streams, o vaultOrder) error {
	var refusal error
	if o.Outcome == registry.CommandRefused {
		refusal = fmt.Errorf("command %d was refused: %s", o.Command, cli.Printable(o.Detail))
	}
	if f.JSON {
		return errors.Join(json.NewEncoder(s.Out).Encode(o), refusal)
	}
	if refusal != nil {
		return refusal
	}
	var err error
	if o.Outcome == "" {
		_, err = fmt.Fprintf(s.Out, "%s vault %s is queued as command %d: a running ingest carries it out, but not while it is frozen (`navlog status`)\n", o.Kind, o.Vault, o.Command)
	} else {
		_, err = fmt.Fprintf(s.Out, "%s vault %s: done, %s\n", o.Kind, o.Vault, cli.Printable(o.Detail))
	}
	return err
}
