package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Metrics and status agree with the log. Many blocks that are not final are committed in one transaction, each as a
// separate unit.
func TestMetricsAndStatusAgreeWithTheLog(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Finality, r.config.Confirmations = Finality{Depth: 900}, 4
	r.steps(20)
	r.mine(150)
	p := r.follow()
	logs, blocks := map[[2]string]float64{}, 0
	all := r.verify()
	for _, record := range all {
		if l := record.GetLog(); l != nil {
			logs[[2]string{common.Address(l.GetAddress()).Hex(), contracts.KindOf(common.Hash(l.GetTopics()[0])).String()}]++
		}
		if record.GetBlock() != nil {
			if blocks++; !record.GetBoundary() {
				t.Fatalf("block record %d does not end its unit", record.GetSeq())
			}
		}
	}
	for labels, want := range logs {
		if got := counterValue(t, p.status.Logs.WithLabelValues(labels[:]...)); got != want {
			t.Errorf("navlog_ingest_logs_total%v is %v, the log has %v", labels, got, want)
		}
	}
	if got := testutil.CollectAndCount(p.status.Logs); got != len(logs) {
		t.Errorf("navlog_ingest_logs_total has %d series, the log %d", got, len(logs))
	}
	height := r.height()
	for name, want := range map[string]uint64{
		"head_block": height, "indexed_block": height, "final_block": r.final(), "referral_block": height - 3,
		"seq": uint64(len(all)), "reorgs_total": 0, "frozen": 0,
	} {
		if got := p.metric(name); got != float64(want) {
			t.Errorf("navlog_ingest_%s is %v, want %d", name, got, want)
		}
	}
	if n := counterValue(t, p.status.Transactions); n > float64(blocks)/10 {
		t.Errorf("%v transactions for %d blocks that existed at the start", n, blocks)
	}
	sent := counterValue(t, p.status.Referrals.WithLabelValues("deposit")) + counterValue(t,
		p.status.Referrals.WithLabelValues("withdrawal"))
	if want := len(r.published()); int(sent) != want || want == 0 {
		t.Errorf("navlog_ingest_referrals_total is %v, the topics have %d", sent, want)
	}
	st := p.Status()
	if st.HeadBlock != height || st.IndexedBlock != height || *st.LagBlocks != 0 || *st.LagSeconds != 0 ||
		st.Seq != uint64(len(all)) ||
		st.LogID != fmt.Sprintf("%x", all[0].GetOrigin().GetLogId()) || st.ETASeconds != nil {
		t.Errorf("the status is %+v", st)
	}
}

func TestReady(t *testing.T) {
	i := New(validConfig(), chainlog.DefaultConfig(), nil, newRegistry(), slog.New(slog.DiscardHandler))
	check := func(ready bool, change func(*status.Status)) {
		t.Helper()
		i.status.Note(change)
		if err := i.Ready(); (err == nil) != ready {
			t.Errorf("in %+v Ready is %v", i.Status(), err)
		}
	}
	lag := func(known bool) {
		t.Helper()
		if st := i.Status(); (st.LagBlocks != nil) != known || (st.LagSeconds != nil) != known {
			t.Errorf("in %+v the lag is %v blocks and %v s, known should be %t", st, st.LagBlocks, st.LagSeconds, known)
		}
	}
	check(false, func(*status.Status) {}) // not started
	lag(false)
	check(true, func(st *status.Status) {
		*st = status.Status{State: status.Following,
			ChainStatus: registry.ChainStatus{HeadBlock: 10, IndexedBlock: 10, HeadTime: 5}, IndexedTime: 5, Checked: time.Now()}
	})
	check(true, func(st *status.Status) { st.HeadBlock = 12 })
	lag(true)
	check(false, func(st *status.Status) { st.HeadBlock = 1000 })
	check(false, func(st *status.Status) { st.HeadBlock, st.Checked = 10, time.Now().Add(-time.Minute) })
	lag(false) // it was 0 when the head was last seen
	if err := i.Ready(); !strings.HasSuffix(err.Error(), ": a node has not responded yet") {
		t.Errorf("while a request has no response yet, Ready is %v", err)
	}
	check(false, func(st *status.Status) { st.State = status.Frozen })
	lag(false)
	check(false, func(st *status.Status) { st.State = status.Backfilling })
	lag(true)
	i.status.Note(func(st *status.Status) { st.State = status.Following })
	// the log's head is a genesis block of time 0
	check(true, func(st *status.Status) { st.Checked, st.IndexedTime = time.Now(), 0 })
	check(false, func(st *status.Status) { st.HeadBlock = 1000 })
	check(false, func(st *status.Status) { st.HeadBlock, st.State = 10, status.Backfilling })
	check(false, func(st *status.Status) { st.State, st.Reason = status.Frozen, "block 3 is final" })
}

// Run writes the status to the registry.
func TestStatusIsReported(t *testing.T) {
	r := newRig(t, kfake)
	pool, err := registry.Open(r.ctx, registry.Config{URL: registrytest.Postgres(t), MaxConns: 4})
	r.must(err)
	t.Cleanup(pool.Close)
	p := New(r.config, r.kafka, pool, newRegistry(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	r.eventually("status in the registry", func() bool {
		rows, err := db.New(pool).ListStatus(r.ctx)
		r.must(err)
		var st registry.ProgramStatus
		return len(rows) == 1 && rows[0].Program == registry.Ingest && json.Unmarshal(rows[0].Status, &st) == nil &&
			st.State == "following" && st.IndexedBlock == r.height() && st.HeadBlock >= st.IndexedBlock && st.LagBlocks != nil
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run ends with %v", err)
	}
}
