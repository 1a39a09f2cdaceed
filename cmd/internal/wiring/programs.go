// Package wiring builds the four programs from a configuration and runs them: each by itself with a small HTTP server
// for operators, or all in one process, where they are stopped in reverse order.
package wiring

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Program is the interface of the four programs.
type Program interface {
	Run(ctx context.Context) error
	Ready() error
}

// Roles of an instance. Ready reports whether the instance is ready for its role.
const (
	Active  = "active"
	Standby = "standby" // another instance does the work; this one takes over when it ends
)

// RoleOf returns the role of a program's instance. All instances of serve and dispatch are active.
func RoleOf(p Program) string {
	if s, may := p.(interface{ StandsBy() bool }); may && s.StandsBy() {
		return Standby
	}
	return Active
}

// Deps are the things that the programs of one process share.
type Deps struct {
	Config  config.Config
	Pool    *pgxpool.Pool
	Metrics *prometheus.Registry
	Log     *slog.Logger

	registerer prometheus.Registerer // of Metrics, with the label chain: one Prometheus may watch several deployments
}

// New opens what the programs share; the caller closes Pool after all programs have ended.
func New(ctx context.Context, c config.Config, log *slog.Logger) (*Deps, error) {
	pool, err := registry.Open(ctx, c.Postgres)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d := &Deps{c, pool, metrics, log,
		prometheus.WrapRegistererWith(prometheus.Labels{"chain": strconv.FormatUint(c.Chain.ID, 10)}, metrics)}
	d.showBuild()
	return d, nil
}

// showBuild exports the versions.
func (d *Deps) showBuild() {
	d.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "navlog_build_info", Help: "Always 1; the labels are the versions of navlog and of Go.",
		ConstLabels: prometheus.Labels{"version": cli.BuildVersion(), "go": runtime.Version()},
	}, func() float64 { return 1 }))
}

// Ingest returns the program ingest.
func (d *Deps) Ingest() *ingest.Ingest {
	return ingest.New(d.Config.Chain, d.Config.Kafka, d.Pool, d.registerer, d.Log.With("program", "ingest"))
}

// Project returns the program project.
func (d *Deps) Project() *projections.Projections {
	return projections.New(d.Config.Projections, d.Config.Chain.ID, d.Config.Kafka, d.Config.ClickHouse, d.Pool,
		d.registerer, d.Log.With("program", "project"))
}

// Serve returns the program serve, or an error if the networks of guard are invalid.
func (d *Deps) Serve() (*query.Query, error) {
	g, err := guard.New(d.Config.Guard)
	if err != nil {
		return nil, err
	}
	c := d.Config
	serve := query.New(c.HTTP, c.Chain.ID, c.ClickHouse, d.Pool, g.CheckURL, d.registerer, d.Log.With("program", "serve"))
	if c.HTTP.PartnerRotation {
		serve.SealWith(c.SecretKey)
	}
	return serve, nil
}

// Dispatch returns the program dispatch, or an error if the guard or the secret key is invalid.
func (d *Deps) Dispatch() (*dispatch.Dispatch, error) {
	g, err := guard.New(d.Config.Guard)
	if err != nil {
		return nil, err
	}
	sealer, err := registry.NewSealer(d.Config.SecretKey)
	if err != nil {
		return nil, err
	}
	c := d.Config.Webhooks
	c.ChainID = d.Config.Chain.ID
	return dispatch.New(c, d.Config.Kafka, d.Pool, sealer, g, d.registerer, d.Log.With("program", "dispatch")), nil
}

// ShowReady exports a program's readiness as a metric, and whether it is a standby, since a ready standby does not do
// the work. While the program is not ready, its other gauges keep their last values.
func (d *Deps) ShowReady(name string, p Program) {
	d.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "navlog_standby", Help: "1 while the program stands by for another instance that does the work.",
		ConstLabels: prometheus.Labels{"program": name},
	}, func() float64 {
		if RoleOf(p) == Standby {
			return 1
		}
		return 0
	}))
	d.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "navlog_ready", Help: "1 while the program is ready, as on /readyz.",
		ConstLabels: prometheus.Labels{"program": name},
	}, func() float64 {
		if p.Ready() != nil {
			return 0
		}
		return 1
	}))
}
