package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/telemetry"
)

type upCmd struct {
	cli.Flags
	Data       string        `type:"path" default:"data" placeholder:"DIR" help:"Folder for the data of the engines and for keys; the next run continues with them (default: data)."`
	Listen     string        `placeholder:"ADDR" help:"Address of the HTTP API (default: 127.0.0.1:8080, or http.listen)."`
	ReadyFile  string        `type:"path" placeholder:"FILE" help:"When everything is ready, write a JSON document with all addresses, contracts and demo keys to this file."`
	NoScenario bool          `help:"Start the chain and the contracts without traffic; each transaction mines a block."`
	Interval   time.Duration `default:"1s" range:"100ms to 1h" help:"Time between two steps of the scenario, 100ms to 1h; also the block time."`
	Preset     []string      `sep:"none" placeholder:"NAME" help:"Add a vault that emits the events of this preset (${presets}), with its own traffic; may be given several times."`
	Seed       int64         `default:"1" help:"Seed of the scenario."`
	RPC        string        `secret:"NAVLOG_CHAIN_RPC" placeholder:"URL" help:"Use this node instead of the development chain (with chain.vaults of the configuration, or none to deploy the reference contracts on it)."`
	Kafka      []string      `placeholder:"HOST:PORT" help:"Use these brokers instead of the embedded Kafka."`
	ClickHouse string        `name:"clickhouse" placeholder:"HOST:PORT" help:"Use this server (native protocol) instead of the embedded ClickHouse."`
	Postgres   string        `secret:"NAVLOG_POSTGRES_URL" placeholder:"URL" help:"Use this server instead of the embedded PostgreSQL."`
}

// readyDocument is the content of the --ready-file: all addresses that a test or a tool needs. It holds demo secrets,
// so the file has mode 0600.
type readyDocument struct {
	API            string                `json:"api"`
	Ops            string                `json:"ops"` // /metrics, /healthz and /readyz of all four programs
	RPC            string                `json:"rpc"`
	Kafka          []string              `json:"kafka"`
	ClickHouse     string                `json:"clickhouse"`
	ClickHouseHTTP string                `json:"clickhouseHttp,omitempty"`
	Postgres       string                `json:"postgres"`
	Receiver       string                `json:"receiver"`
	Contracts      *devchain.Contracts   `json:"contracts,omitempty"`
	Presets        []*devchain.Protocol  `json:"presets,omitempty"`
	Partners       []registry.NewPartner `json:"partners"`
}

// up is one run of `navlog-dev up`.
type up struct {
	cmd      upCmd
	streams  *cli.Streams
	screen   *console.Console
	log      *slog.Logger
	config   config.Config
	services *wiring.Services
	ready    readyDocument
	// wroteReady is set if this run wrote the ready file.
	wroteReady bool
	api        *query.Query
	plays      []*devchain.Play
}

func (cmd upCmd) Run(ctx context.Context, s *cli.Streams) (err error) {
	screen := console.New(s.Err)
	log := cmd.Logger(screen)
	defer telemetry.Start(ctx, "navlog-dev", cli.BuildVersion(), log)()
	c, err := config.Load(cmd.Config, os.Environ())
	if err != nil {
		return cli.Configuration.With(fmt.Errorf("the configuration has mistakes:\n%w", err))
	}
	release, err := engines.Reserve(cmd.Data)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	defer release()
	u := &up{cmd: cmd, streams: s, screen: screen, log: log, config: c, services: wiring.NewServices(log)}
	defer func() {
		err = errors.Join(err, u.services.Stop())
		u.removeReadyFile()
	}()
	if err := u.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // a signal arrived during the start
		}
		return err
	}
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-u.services.Failed:
		return err
	}
}

func (u *up) start(ctx context.Context) error {
	if err := u.startEngines(ctx); err != nil {
		return err
	}
	if err := u.ensureContracts(ctx); err != nil {
		return err
	}
	if err := u.ensurePresets(ctx); err != nil {
		return err
	}
	if err := u.applyDevelopmentSettings(); err != nil {
		return err
	}
	d, err := wiring.New(ctx, u.config, u.log)
	if err != nil {
		return err
	}
	u.services.Own(ctx, "PostgreSQL pool", func() error { d.Pool.Close(); return nil })
	created, err := u.ensurePartners(ctx, d)
	if err != nil {
		return err
	}
	if err := u.startReceiver(ctx); err != nil {
		return err
	}
	if err := u.startPrograms(ctx, d); err != nil {
		return err
	}
	if err := u.registerWebhooks(ctx, d); err != nil {
		return err
	}
	if err := errors.Join(u.writeConfiguration(), u.writeReadyFile()); err != nil {
		return err
	}
	u.printWelcome(created)
	if !u.cmd.NoScenario && u.ready.Contracts != nil {
		traffic := devchain.New(u.ready.RPC, u.ready.Contracts, u.cmd.Seed,
			[]uint32{uint32(u.ready.Partners[0].ID), uint32(u.ready.Partners[1].ID)}, u.log.With("program", "scenario"))
		u.services.Start(ctx, "scenario", func(ctx context.Context) error { return traffic.Run(ctx, u.cmd.Interval) })
	}
	for _, play := range u.plays {
		if !u.cmd.NoScenario {
			u.services.Start(ctx, "scenario of "+play.Preset, func(ctx context.Context) error {
				return play.Run(ctx, u.cmd.Interval, u.log.With("program", "scenario"))
			})
		}
	}
	return nil
}

// ensureContracts finds the reference contracts of the last run, or deploys them on a chain that has none; a
// configuration with vaults needs neither.
func (u *up) ensureContracts(ctx context.Context) error {
	if len(u.config.Chain.Vaults) > 0 {
		return nil
	}
	file := filepath.Join(u.cmd.Data, "contracts.json")
	deployed := new(devchain.Contracts)
	switch err := readJSON(file, deployed); {
	case errors.Is(err, os.ErrNotExist):
		u.log.Info("deploying the reference contracts")
		if deployed, err = devchain.Deploy(ctx, u.ready.RPC); err != nil {
			return fmt.Errorf("deploy the reference contracts at %s: %w; is --rpc right, is the node up, and is its chain a "+
				"development chain?", contracts.EndpointName(u.ready.RPC), err)
		}
		if err := writeJSON(file, deployed); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	u.ready.Contracts = deployed
	u.config.Chain.ID = deployed.ChainID
	u.config.HTTP.Router = deployed.Router.Hex()
	u.config.HTTP.PartnerRotation = true
	for _, v := range deployed.Vaults {
		u.config.Chain.Vaults = append(u.config.Chain.Vaults,
			vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock})
	}
	return nil
}

// applyDevelopmentSettings sets what only `up` may choose: a new secret key, and webhooks to this machine.
func (u *up) applyDevelopmentSettings() error {
	if u.config.SecretKey == "" {
		key, err := ensureSecretKey(filepath.Join(u.cmd.Data, secretKeyFile))
		if err != nil {
			return err
		}
		u.config.SecretKey = key
	}
	if u.config.HTTP.StatementKey == "" {
		key, err := ensureSecretKey(filepath.Join(u.cmd.Data, "statement.key"))
		if err != nil {
			return err
		}
		u.config.HTTP.StatementKey = key
	}
	// On the development chain a block is final when it is two epochs deep.
	u.config.HTTP.StatementConfirmations = min(u.config.HTTP.StatementConfirmations, devSlotsInEpoch)
	if u.config.HTTP.ProofRPC == "" && strings.HasPrefix(u.ready.RPC, "http") {
		u.config.HTTP.ProofRPC = u.ready.RPC
	}
	if u.cmd.Listen != "" {
		u.config.HTTP.Listen = u.cmd.Listen
	}
	u.config.Guard.AllowNetworks = append(u.config.Guard.AllowNetworks, "127.0.0.0/8", "::1/128")
	if err := u.config.Validate(config.AllSections...); err != nil {
		return cli.Configuration.With(fmt.Errorf("the configuration has mistakes:\n%w", err))
	}
	return nil
}

func (u *up) startReceiver(ctx context.Context) error {
	secrets := map[int64]string{}
	for _, p := range u.ready.Partners {
		secrets[p.ID] = p.SigningSecret
	}
	r, err := receiver.Start(filepath.Join(u.cmd.Data, "receiver"), secrets, u.streams.Out,
		u.log.With("program", "receiver"))
	if err != nil {
		return fmt.Errorf("start the demo receiver: %w", err)
	}
	u.services.Own(ctx, "receiver", func() error { r.Close(); return nil })
	u.ready.Receiver = "https://" + r.Address
	return u.trustReceiver(r.CAFile)
}

// trustReceiver adds the demo receiver's certificate to those of webhooks.caFile.
func (u *up) trustReceiver(certificate string) error {
	own, err := os.ReadFile(certificate)
	if err != nil {
		return fmt.Errorf("read the demo receiver's certificate: %w", err)
	}
	if file := u.config.Webhooks.CAFile; file != "" {
		configured, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read webhooks.caFile: %w", err)
		}
		own = append(append(own, '\n'), configured...)
	}
	u.config.Webhooks.CAFile = filepath.Join(u.cmd.Data, "receiver", "trusted.pem")
	return os.WriteFile(u.config.Webhooks.CAFile, own, 0o644)
}

// startPrograms runs the four programs and waits until each one is ready.
func (u *up) startPrograms(ctx context.Context, d *wiring.Deps) error {
	d.Config = u.config
	serve, err := d.Serve()
	if err != nil {
		return err
	}
	dispatch, err := d.Dispatch()
	if err != nil {
		return err
	}
	u.api = serve
	ingest := d.Ingest()
	programs := []struct {
		name string
		wiring.Program
	}{{"serve", serve}, {"dispatch", dispatch}, {"project", d.Project()}, {"ingest", ingest}}
	byName := map[string]wiring.Program{}
	for _, p := range programs {
		byName[p.name] = p.Program
	}
	ops, err := wiring.ListenOps(cmp.Or(u.config.Ops.Listen, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	u.ready.Ops = "http://" + ops.Addr().String()
	u.services.Start(ctx, "ops", func(ctx context.Context) error { return d.ServeOps(ctx, ops, byName) })
	for _, p := range programs {
		d.ShowReady(p.name, p)
		u.services.Start(ctx, p.name, p.Run)
	}
	go func() { _ = u.screen.Watch(ctx, wiring.Backfill(ingest), d.Log.With("program", "ingest")) }()
	for _, p := range programs {
		if err := u.await(ctx, p.name, p.Ready); err != nil {
			return err
		}
	}
	u.ready.API = "http://" + serve.Addr()
	return nil
}

// await polls ready until it returns nil, a service fails, or ctx ends. Every ten seconds it logs what it is waiting
// for.
func (u *up) await(ctx context.Context, name string, ready func() error) error {
	poll, say := time.NewTicker(50*time.Millisecond), time.NewTicker(10*time.Second)
	defer poll.Stop()
	defer say.Stop()
	for {
		fault := ready()
		if fault == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-u.services.Failed:
			return err
		case <-say.C:
			u.log.Info("waiting", "for", name, "because", fault)
		case <-poll.C:
		}
	}
}

func (u *up) writeReadyFile() error {
	if u.cmd.ReadyFile == "" {
		return nil
	}
	if err := writeJSON(u.cmd.ReadyFile, u.ready); err != nil {
		return err
	}
	u.wroteReady = true
	return nil
}

// removeReadyFile removes the ready file unless another run wrote it: a run on the same folder may have made this one
// fail, and be ready itself.
func (u *up) removeReadyFile() {
	if u.wroteReady {
		_ = os.Remove(u.cmd.ReadyFile)
	}
}

func (u *up) printWelcome(created bool) {
	w, p := u.streams.Out, u.ready.Partners
	fmt.Fprintf(w, "\nnavlog is up. Data in %s; Ctrl-C stops everything in order.\n\n", u.cmd.Data)
	fmt.Fprintf(w, "  API         %s/api/v1/vaults\n  status      %s/status\n  metrics     %s/metrics\n", u.ready.API,
		u.ready.API, u.ready.Ops)
	fmt.Fprintf(w, "  chain       %s\n  Kafka       %s\n  ClickHouse  %s\n  PostgreSQL  %s\n  receiver    %s\n\n",
		contracts.EndpointName(u.ready.RPC), strings.Join(u.ready.Kafka, ","), u.ready.ClickHouse, redact(u.ready.Postgres),
		u.ready.Receiver)
	if created {
		fmt.Fprintln(w, "Demo partners (shown once; partners.json in the data folder keeps them for the receiver):")
		for _, one := range p {
			fmt.Fprintf(w, "  partner %d  %-12s key %s  secret %s\n", one.ID, one.Name, one.APIKey, one.SigningSecret)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Operate it:\n  bin/navlog status --config %[1]s\n  bin/navlog doctor --config %[1]s\n  "+
		"NAVLOG_SECRET_KEY_FILE=%[2]s bin/navlog partner list --config %[1]s\n\n",
		u.configuration(), filepath.Join(u.cmd.Data, secretKeyFile))
	fmt.Fprintf(w, "Try:\n  curl -s %s/api/v1/vaults\n  curl -s '%s/api/v1/users?sortBy=totalDeposited&pageSize=3'\n  "+
		"curl -s -H \"x-api-key: $(grep -m1 -o 'nk_test_[0-9A-Za-z]*' %s)\" %s/api/v1/partner/stats\n\n",
		u.ready.API, u.ready.API, filepath.Join(u.cmd.Data, "partners.json"), u.ready.API)
}

// redact returns the address of a database and its name, without user info and parameters, which may hold passwords.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "(address hidden)"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

func readJSON(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %w; remove the data folder to start over", file, err)
	}
	return nil
}

// writeJSON replaces the file in one step, readable by its owner only.
func writeJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.WriteFile(file+".new", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
