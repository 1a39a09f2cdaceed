// Package partitions cuts the programs off from their engines, and slows their network down, while the chain advances.
// Each program that is cut off runs in a network namespace of its own; package link drops its packets without an error,
// as a broken network does. After each cut it heals. At the end package fleet compares log, read model and webhooks
// with the chain.
package partitions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/link"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

const (
	chainID  = 31337
	partners = 4
	// concurrency of the requests to a partner, which is webhooks.perPartnerConcurrency.
	concurrency = 4
	// interval of the traffic: a block.
	interval = 200 * time.Millisecond
	// growth is how many blocks the log must gain to show that it is written.
	growth = 10
	// longest is how long a recovery may take on a busy machine. The programs notice a silent connection within 20 to
	// 30 seconds, most of them sooner.
	longest = 90 * time.Second
	// standby is how long the writer must be silent before the standby takes over.
	standby = 3 * time.Second
	lease   = 5 * time.Second
)

// A network is the fleet, with a link for each program that is cut off.
type network struct {
	*fleet.Fleet
	t                                  *testing.T
	first, second, project             *fleet.Program // first and second are of ingest
	dispatch, other                    *fleet.Program
	toFirst, toProject, toDispatch     *link.Link
	kafkaPort, clickHousePort, sqlPort int
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t}
	// The embedded broker fences a writer like Apache Kafka, which chaos-brokers uses.
	o := fleet.Options{Partners: partners, SlotsInEpoch: 1, Settings: []string{
		fmt.Sprint("NAVLOG_CHAIN_STANDBY=", standby),
		fmt.Sprintf("NAVLOG_WEBHOOKS_LEASE_SECONDS=%.0f", lease.Seconds()),
		fmt.Sprint("NAVLOG_WEBHOOKS_PER_PARTNER_CONCURRENCY=", concurrency),
	}}
	n.Fleet = fleet.New(t, o)
	n.admit(filepath.Join(n.Dir, "postgres", "data", "pg_hba.conf"))
	n.kafkaPort, n.clickHousePort = port(t, n.Kafka.Addr), port(t, n.ClickHouse.Addr)
	address, err := url.Parse(n.Postgres.URL)
	must(t, err)
	n.sqlPort = port(t, address.Host)
	for i, l := range []**link.Link{&n.toFirst, &n.toProject, &n.toDispatch} {
		var err error
		*l, err = link.New(i)
		must(t, err)
		t.Cleanup(func() {
			if err := (*l).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	n.first = n.LaunchAt(n.toFirst, "ingest", "ingest-first")
	n.Until(n.Ready)
	n.second = n.Launch("ingest", "ingest-second")
	n.project = n.LaunchAt(n.toProject, "project", "project")
	n.dispatch = n.LaunchAt(n.toDispatch, "dispatch", "dispatch-first")
	n.Until(n.Ready)
	// The first dispatcher has all partners before the second one starts.
	n.Until(func() error { return n.led(n.dispatch, partners) })
	n.other = n.Launch("dispatch", "dispatch-second")
	n.Until(n.Ready)
	return n
}

// admit lets clients from namespaces log in to PostgreSQL, which otherwise accepts only those from 127.0.0.1.
func (n *network) admit(path string) {
	n.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(n.t, err)
	_, err = fmt.Fprintln(f, "host all all "+link.Network+" scram-sha-256")
	must(n.t, errors.Join(err, f.Close()))
	_, err = n.Pool.Exec(n.t.Context(), "SELECT pg_reload_conf()")
	must(n.t, err)
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.Atoi(text)
	must(t, err)
	return number
}

// led returns nil if the leases of that many partners are live and of one dispatcher, which is the one that p reports.
func (n *network) led(p *fleet.Program, want int) error {
	var owners, live int
	row := n.Pool.QueryRow(n.t.Context(), "SELECT count(DISTINCT owner), count(*) FROM lease WHERE until > now()")
	if err := row.Scan(&owners, &live); err != nil {
		return err
	}
	if owners != 1 || live != want {
		return fmt.Errorf("%d leases of %d dispatchers, want %d of %s", live, owners, want, p.Name)
	}
	return nil
}

// owner returns the dispatcher that has a partner's live lease.
func (n *network) owner(partner int) (owner uuid.UUID, err error) {
	row := n.Pool.QueryRow(n.t.Context(), "SELECT owner FROM lease WHERE partner_id = $1 AND until > now()", partner)
	return owner, row.Scan(&owner)
}

// took logs how long a recovery took, and fails the test if it was too long.
func (n *network) took(what string, began time.Time) {
	n.t.Helper()
	took := time.Since(began)
	n.t.Logf("%s after %.1f s", what, took.Seconds())
	if took > longest {
		n.t.Errorf("%s after %s, want at most %s", what, took, longest)
	}
}

func TestPartitions(t *testing.T) {
	if err := link.Available(); err != nil {
		t.Skip(err)
	}
	n := newNetwork(t)
	stopTraffic := n.Traffic(interval)
	n.Writes(n.first, growth)
	n.cutWriter()
	n.cutProject("PostgreSQL", "the lease is lost", n.sqlPort)
	n.cutProject("ClickHouse", "no response from Kafka or ClickHouse", n.clickHousePort)
	n.cutDispatch()
	n.slow()
	stopTraffic()
	history := n.Finish(n.second, n.project)
	n.Until(n.Ready)
	n.oneWriter(2)
	verdict := n.Compare(history)
	// What the dispatcher was sending when it lost its leases may be sent again by the one that takes over, and that
	// happens twice: when it is cut off, and when it gets partners back.
	if verdict.Repeated > 2*partners*concurrency || verdict.Logs < 100 || verdict.Events < 20 {
		t.Errorf("the drill ended with %s", verdict)
	}
}

// cutWriter cuts the writing ingest off from Kafka. The standby takes over; when the link heals, the old writer stands
// by without having written anything.
func (n *network) cutWriter() {
	n.t.Helper()
	began := time.Now()
	n.toFirst.Cut(n.kafkaPort)
	n.Until(func() error {
		if state, err := n.second.Readiness(); err != nil || !state.OK || state.Role == fleet.Standby {
			return fmt.Errorf("the standby is %+v: %v", state, err)
		}
		return nil
	})
	n.Writes(n.second, growth)
	n.took("ingest was cut off from Kafka, and the standby has written", began)
	began = time.Now()
	n.toFirst.Heal()
	n.Until(func() error {
		if state, err := n.first.Readiness(); err != nil || !state.OK || state.Role != fleet.Standby {
			return fmt.Errorf("the old writer is %+v: %v", state, err)
		}
		return nil
	})
	n.took("the link healed, and the old writer stands by", began)
	n.Writes(n.second, growth)
	n.Follows(n.project, n.second)
	n.oneWriter(2)
}

// oneWriter checks that the log was written by that many instances one after the other: none wrote again after the next
// one had begun.
func (n *network) oneWriter(want int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), fleet.Patience)
	defer cancel()
	cursors, err := stack.Records(ctx, n.Brokers(), chainlog.CursorTopic(chainID))
	must(n.t, err)
	var writers [][]byte
	for _, r := range cursors {
		cursor := new(event.Cursor)
		must(n.t, proto.Unmarshal(r.Value, cursor))
		if last := len(writers) - 1; last < 0 || !bytes.Equal(writers[last], cursor.GetInstanceId()) {
			writers = append(writers, cursor.GetInstanceId())
		}
	}
	if len(writers) != want {
		n.t.Errorf("the log was written by %x, one after the other; want %d writers", writers, want)
	}
}

// cutProject cuts project off from one of its engines until it is not ready for the expected reason; then the link
// heals, and the read model must catch up.
func (n *network) cutProject(engine, expected string, enginePort int) {
	n.t.Helper()
	n.Writes(n.second, growth) // after an earlier cut it may still be starting again
	n.Follows(n.project, n.second)
	began := time.Now()
	n.toProject.Cut(enginePort)
	var reason error
	n.Until(func() error {
		if reason = n.project.Ready(); reason == nil || !strings.Contains(reason.Error(), expected) {
			return fmt.Errorf("project does not report that it is cut off from %s: %v", engine, reason)
		}
		return nil
	})
	n.took("project was cut off from "+engine+", which it reports: "+reason.Error(), began)
	began = time.Now()
	n.toProject.Heal()
	n.Follows(n.project, n.second)
	n.took("the link healed, and the read model has the whole log", began)
}

// cutDispatch cuts the dispatcher that sends off from PostgreSQL. The other one takes its partners over; when the link
// heals, the first one works again.
func (n *network) cutDispatch() {
	n.t.Helper()
	first := map[uuid.UUID]bool{}
	n.Until(func() error {
		clear(first)
		for id := 1; id <= partners; id++ {
			owner, err := n.owner(id)
			if err != nil {
				return err
			}
			first[owner] = true
		}
		if len(first) != 2 { // rebalanced
			return fmt.Errorf("%d dispatchers have the partners, want both", len(first))
		}
		return nil
	})
	sent := n.Receiver.Count()
	began := time.Now()
	n.toDispatch.Cut(n.sqlPort)
	n.Until(func() error { return n.led(n.other, partners) })
	n.Until(func() error {
		if err := n.dispatch.Ready(); err == nil {
			return errors.New("the dispatcher is ready although it is cut off from PostgreSQL")
		}
		if now := n.Receiver.Count(); now < sent+growth {
			return fmt.Errorf("%d events have arrived, and %d had before the cut", now, sent)
		}
		return nil
	})
	n.took("dispatch was cut off from PostgreSQL, and the other one sends for all partners", began)
	began = time.Now()
	n.toDispatch.Heal()
	n.Until(func() error { return n.dispatch.Ready() })
	n.took("the link healed, and the dispatcher is ready", began)
}

// slow adds 200 ms to every round trip and loses 2 % of the packets. The log and the read model must keep up with the
// chain.
func (n *network) slow() {
	n.t.Helper()
	for _, l := range []*link.Link{n.toFirst, n.toProject, n.toDispatch} {
		l.Slow(200*time.Millisecond, 0.02)
	}
	began := time.Now()
	for range 3 {
		n.Writes(n.second, growth)
		n.Follows(n.project, n.second)
	}
	n.took(fmt.Sprintf("with 200 ms and 2 %% loss, the read model has followed %d blocks", 3*growth), began)
	for _, l := range []*link.Link{n.toFirst, n.toProject, n.toDispatch} {
		l.Slow(0, 0)
	}
}
