package wiring

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// pingEvery is the pause between two pings of an engine, and pingWithin is how long it has to respond.
	pingEvery  = time.Second
	pingWithin = 4 * time.Second
)

// Reach watches whether programs can reach their engines and nodes, for /readyz.
type Reach struct {
	engines []*engine
	nodes   func() []registry.EndpointStatus // of ingest; nil if it does not run here
	close   []func()
}

// An engine is what a program connects to.
type engine struct {
	name, address, advice string
	ping                  func(context.Context) error

	mu       sync.Mutex
	answered time.Time // the last time, or when the watch began
	fault    error     // of the last ping; nil if it succeeded
}

// outage describes an engine or a node that does not respond, or cannot be used.
func outage(name, address string, since time.Time, fault, advice string) string {
	return fmt.Sprintf("%s at %s has been failing since %s (%s): %s",
		name, address, since.UTC().Format(time.RFC3339), strings.Join(strings.Fields(fault), " "), advice)
}

// newReach returns a watch over the engines of programs of this process, by their names. The caller closes it.
func (d *Deps) newReach(programs map[string]Program) (*Reach, error) {
	r := &Reach{}
	needs := map[config.Section]bool{}
	for name, p := range programs {
		for _, section := range config.Needs[name] {
			needs[section] = true
		}
		if i, ok := p.(*ingest.Ingest); ok {
			r.nodes = func() []registry.EndpointStatus { return i.Status().Endpoints }
		}
	}
	if needs[config.NeedKafka] {
		client, err := kgo.NewClient(d.Config.Kafka.Options()...)
		if err != nil {
			return nil, fmt.Errorf("create a Kafka client: %w", err)
		}
		r.close = append(r.close, client.Close)
		// Each broker by itself: without most of them nothing is written, although one still responds.
		for i, broker := range client.SeedBrokers() {
			r.add("Kafka", d.Config.Kafka.Brokers[i], "check kafka.brokers and that the broker is up",
				func(ctx context.Context) error {
					request := kmsg.NewPtrMetadataRequest()
					request.Topics = []kmsg.MetadataRequestTopic{} // none
					_, err := broker.Request(ctx, request)
					return err
				})
		}
	}
	if needs[config.NeedClickHouse] {
		open := d.Config.ClickHouse.Open
		if _, serves := programs["serve"]; serves && len(programs) == 1 { // it may have the read-only login only
			open = func(database string) (driver.Conn, error) { return d.Config.ClickHouse.OpenReader(database, 1) }
		}
		conn, err := open("")
		if err != nil {
			r.Close()
			return nil, err
		}
		r.close = append(r.close, func() { _ = conn.Close() })
		r.add("ClickHouse", d.Config.ClickHouse.Addr, "check clickhouse.addr and that the server is up", conn.Ping)
	}
	if needs[config.NeedPostgres] {
		r.add("PostgreSQL", registry.Servers(d.Pool), "check postgres.url and that the server is up",
			func(ctx context.Context) error { return registry.Writable(ctx, d.Pool) })
	}
	return r, nil
}

func (r *Reach) add(name, address, advice string, ping func(context.Context) error) {
	r.engines = append(r.engines, &engine{name: name, address: address, advice: advice, ping: ping, answered: time.Now()})
}

// Close ends the connections. Run must have returned.
func (r *Reach) Close() {
	for _, end := range r.close {
		end()
	}
}

// Run pings the engines until ctx ends.
func (r *Reach) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, e := range r.engines {
		group.Go(func() { e.watch(ctx) })
	}
	group.Wait()
}

func (e *engine) watch(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, pingWithin)
		fault := e.ping(limited)
		cancel()
		if ctx.Err() == nil {
			e.note(fault, time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *engine) note(fault error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fault = fault; fault == nil {
		e.answered = now
	}
}

// Outages returns a sentence for each engine and node that does not respond: which one, since when, and what to do.
func (r *Reach) Outages() (outages []string) {
	for _, e := range r.engines {
		e.mu.Lock()
		answered, fault := e.answered, e.fault
		e.mu.Unlock()
		if fault != nil {
			outages = append(outages, outage(e.name, e.address, answered, fault.Error(), e.advice))
		}
	}
	if r.nodes == nil {
		return outages
	}
	for _, n := range r.nodes() {
		if n.FailingSince != nil {
			outages = append(outages,
				outage("the node", n.Name, *n.FailingSince, n.LastError, "check chain.rpc and that the node is up"))
		}
	}
	return outages
}
