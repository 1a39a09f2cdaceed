package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest/vaults"
)

// ensurePresets adds a vault of each requested preset to the vaults of the reference contracts; it finds the one of an
// earlier run, or deploys one.
func (u *up) ensurePresets(ctx context.Context) error {
	if len(u.cmd.Preset) > 0 && u.ready.Contracts == nil {
		return cli.Usage.With(errors.New("--preset adds vaults to a development chain, and the configuration already " +
			"names chain.vaults"))
	}
	for _, preset := range u.cmd.Preset {
		play, err := u.ensurePreset(ctx, preset)
		if err != nil {
			return err
		}
		u.services.Own(ctx, "vault of "+preset, func() error { play.Close(); return nil })
		u.plays, u.ready.Presets = append(u.plays, play), append(u.ready.Presets, play.Protocol)
		v := vaults.Config{Address: play.Sources["vault"].Hex(), StartBlock: play.StartBlock, Mapping: preset,
			Sources: map[string]vaults.SourceConfig{}}
		for role, address := range play.Sources {
			if role != "vault" {
				v.Sources[role] = vaults.SourceConfig{Address: address.Hex()}
			}
		}
		if c := play.Currency; c != nil {
			v.Asset = vaults.AssetConfig{Address: c.Address.Hex(), Symbol: c.Symbol, Decimals: &c.Decimals}
		}
		u.config.Chain.Vaults = append(u.config.Chain.Vaults, v)
	}
	return nil
}

func (u *up) ensurePreset(ctx context.Context, preset string) (*devchain.Play, error) {
	file := filepath.Join(u.cmd.Data, "preset-"+filepath.Base(preset)+".json")
	deployed := new(devchain.Protocol)
	switch err := readJSON(file, deployed); {
	case errors.Is(err, os.ErrNotExist):
		u.log.Info("deploying a vault", "preset", preset)
		play, err := devchain.DeployProtocol(ctx, u.ready.RPC, preset, uint64(u.cmd.Seed))
		if err != nil {
			return nil, fmt.Errorf("--preset %s: %w", preset, err)
		}
		return play, writeJSON(file, play.Protocol)
	case err != nil:
		return nil, err
	}
	return devchain.OpenProtocol(ctx, u.ready.RPC, deployed, uint64(u.cmd.Seed))
}
