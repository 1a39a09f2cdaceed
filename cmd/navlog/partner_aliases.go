package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/operate"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// Aliases are in the log, like vaults: these commands leave a row for ingest, and wait for the outcome.

type partnerAliasesCmd struct {
	Add      aliasAddCmd      `cmd:"" help:"Add an alias: an attribution value in the logs of a vault names a partner."`
	Remove   aliasRemoveCmd   `cmd:"" help:"Remove an alias: the value names no partner."`
	List     aliasListCmd     `cmd:"" help:"List the aliases, or with --unknown the values that have none."`
	Backfill aliasBackfillCmd `cmd:"" help:"Send a partner the webhooks of referrals that are older than their alias."`
}

type aliasAddCmd struct {
	ingestFlags
	Partner int64  `arg:"" range:"1 to 4294967295" help:"Partner id, 1 to 4294967295."`
	Value   string `arg:"" help:"The value in the logs: a decimal number, an address, or 0x and 64 hex digits."`
	Vault   string `required:"" placeholder:"ADDRESS" help:"The vault whose logs have it."`
}

func (cmd aliasAddCmd) Run(ctx context.Context, s *cli.Streams) error {
	given, err := aliasOrder(registry.SetAlias, "partner aliases add", cmd.Vault, cmd.Value, cmd.Partner)
	if err != nil {
		return err
	}
	given.effect = "Webhooks follow it from now on. The next generation has it for the whole history, with the amounts " +
		"in the partner's totals."
	return cmd.order(ctx, s, given)
}

type aliasRemoveCmd struct {
	ingestFlags
	Value string `arg:"" help:"The value in the logs: a decimal number, an address, or 0x and 64 hex digits."`
	Vault string `required:"" placeholder:"ADDRESS" help:"The vault whose logs have it."`
}

func (cmd aliasRemoveCmd) Run(ctx context.Context, s *cli.Streams) error {
	given, err := aliasOrder(registry.RemoveAlias, "partner aliases remove", cmd.Vault, cmd.Value, 0)
	if err != nil {
		return err
	}
	given.effect = "From now on no webhook is sent for it, and from the next generation on its amounts are in no " +
		"partner's totals. Events that were sent are not revoked."
	return cmd.order(ctx, s, given)
}

// aliasOrder returns the command about the alias of a value.
func aliasOrder(kind, action, vault, text string, partner int64) (ingestOrder, error) {
	address, err := vaultAddress(vault)
	if err != nil {
		return ingestOrder{}, err
	}
	value, err := mapping.AttributionWord(text)
	if err != nil {
		return ingestOrder{}, cli.Usage.With(err)
	}
	argument, err := vaults.Alias{Value: value, Partner: uint32(partner)}.Encode()
	what := "remove the alias " + mapping.AttributionText(value) + " of"
	if partner != 0 {
		what = fmt.Sprintf("add the alias %s for partner %d to", mapping.AttributionText(value), partner)
	}
	return ingestOrder{kind: kind, action: action, vault: address, partner: partner, argument: argument, what: what}, err
}

type aliasBackfillCmd struct {
	ingestFlags
	Partner int64 `arg:"" help:"Partner id."`
}

// Run leaves a command for each vault in which the partner has an alias. ingest reads the whole log for each of them.
// If one is rejected, the others are left all the same.
func (cmd aliasBackfillCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		_, records, err := operate.NewestVaults(ctx, c)
		if err != nil {
			return err
		}
		argument, err := vaults.Alias{Partner: uint32(cmd.Partner)}.Encode()
		if err != nil {
			return err
		}
		what := fmt.Sprintf("send partner %d the earlier referrals of", cmd.Partner)
		var given []ingestOrder
		var names []string
		for _, v := range records {
			if slices.ContainsFunc(v.GetAliases(), func(a *event.Alias) bool { return int64(a.GetPartnerId()) == cmd.Partner }) {
				vault := common.BytesToAddress(v.GetAddress())
				given = append(given, ingestOrder{kind: registry.SendEarlier, action: "partner aliases backfill", vault: vault,
					partner: cmd.Partner, argument: argument, what: what})
				names = append(names, vault.Hex())
			}
		}
		if len(given) == 0 {
			return fmt.Errorf("partner %d has no alias: add one with `navlog partner aliases add`", cmd.Partner)
		}
		if !cmd.Yes {
			if err := confirm(ctx, s,
				fmt.Sprintf("%s vault %s of chain %d. The partner gets the webhooks of all final referrals that it has not "+
					"received yet.\n",
					what, strings.Join(names, ", "), c.Chain.ID)); err != nil {
				return err
			}
		}
		all := []vaultOrder{}
		var faults []error
		for _, one := range given {
			o, err := cmd.submit(ctx, s, pool, c, one)
			if err != nil {
				faults = append(faults, fmt.Errorf("vault %s: %w", one.vault, err))
				continue
			}
			all, faults = append(all, o), append(faults, o.refusal())
		}
		faults = append(faults, cmd.Print(s.Out, all, func(w io.Writer) {
			for _, o := range all {
				o.write(w)
			}
		}))
		return errors.Join(faults...)
	}, config.NeedChainID, config.NeedKafka)
}

type aliasListCmd struct {
	registryFlags
	Unknown bool   `help:"List the values in the logs that have no alias, the most frequent first."`
	Limit   uint64 `default:"100" range:"1 to 10000" help:"How many unknown values to list, 1 to 10000."`
}

type aliasRow struct {
	Vault   string      `json:"vault"`
	Value   common.Hash `json:"value"` // as in the logs
	Partner uint32      `json:"partner"`
}

type unknownRow struct {
	Vault    string      `json:"vault"`
	Value    common.Hash `json:"value"`
	Deposits uint64      `json:"deposits"`
	Requests uint64      `json:"requests"`
	Block    uint64      `json:"firstBlock"`
	Since    time.Time   `json:"since"`
}

func (cmd aliasListCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.ReadReaching(ctx, cmd.Flags, config.NeedChainID, config.NeedKafka)
	if err != nil {
		return err
	}
	_, vaults, err := operate.NewestVaults(ctx, c)
	if err != nil {
		return err
	}
	if cmd.Unknown {
		return cmd.unknown(ctx, s, vaults)
	}
	rows := []aliasRow{}
	for _, v := range vaults {
		for _, a := range v.GetAliases() {
			rows = append(rows, aliasRow{common.BytesToAddress(v.GetAddress()).Hex(), common.BytesToHash(a.GetValue()),
				a.GetPartnerId()})
		}
	}
	return cli.Table(cmd.Output, s.Out, rows, "VAULT\tVALUE\tPARTNER",
		func(r aliasRow) []any { return []any{r.Vault, mapping.AttributionText(r.Value), r.Partner} })
}

// unknown lists the values that are in the live generation and have no alias in the log.
func (cmd aliasListCmd) unknown(ctx context.Context, s *cli.Streams, vaults []*event.Vault) error {
	known, aliases := map[common.Address]*event.Vault{}, uint64(0)
	for _, v := range vaults {
		known[common.BytesToAddress(v.GetAddress())] = v
		aliases += uint64(len(v.GetAliases()))
	}
	var all []projections.Attribution
	err := cmd.withOperator(ctx, func(o *projections.Operator) (err error) {
		all, err = o.Attributions(ctx, cmd.Limit+aliases)
		return err
	}, config.NeedChainID, config.NeedKafka)
	if err != nil {
		return err
	}
	rows := []unknownRow{}
	for _, a := range all {
		if mapping.AliasOf(known[a.Vault], a.Value) == 0 && uint64(len(rows)) < cmd.Limit {
			rows = append(rows, unknownRow{a.Vault.Hex(), a.Value, a.Deposits, a.Requests, a.First,
				time.Unix(int64(a.Since), 0).UTC()})
		}
	}
	return cli.Table(cmd.Output, s.Out, rows, "VAULT\tVALUE\tDEPOSITS\tREQUESTS\tSINCE", func(r unknownRow) []any {
		return []any{r.Vault, mapping.AttributionText(r.Value), r.Deposits, r.Requests,
			fmt.Sprintf("block %d, %s", r.Block, clock(&r.Since))}
	})
}
