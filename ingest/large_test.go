package ingest

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/schemas/event"
)

// Logs with much data do not stop ingest. A record holds as much data as it can; for larger data it holds the length
// and the hash. Many of them in a block are one unit, and a reorganisation retracts them unchanged.
func TestLargeLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential: large records, which the race detector slows down")
	}
	for name, c := range map[string]struct {
		depth uint64 // depth of finality
		bytes int
	}{
		"whole, in backfill": {1, event.MaxData}, "whole, at the head": {500, event.MaxData},
		"too large, in backfill": {1, event.MaxData + 1}, "too large, at the head": {500, 1_500_000},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Finality = Finality{Depth: c.depth}
			r.steps(6)
			data := bytes.Repeat([]byte{0xab}, c.bytes)
			r.throughProxy(withLogs(func(l map[string]any) { l["data"] = hexutil.Bytes(data) }))
			p := r.follow()
			if c.depth > 100 {
				r.reorg(1)
				r.steps(1)
				p.caughtUp()
			}
			r.settle()
			all, live := r.log()
			logs := 0
			for _, record := range live {
				l := record.GetLog()
				if l == nil {
					continue
				}
				logs++
				if l.Omitted() != (c.bytes > event.MaxData) || !l.HasData(data) || l.HasData(data[1:]) {
					t.Fatalf("record %d has %d bytes of data, with the length %d and the hash %x", record.GetSeq(), len(l.GetData()),
						l.GetDataLength(), l.GetDataHash())
				}
			}
			appended := 0
			for _, record := range all {
				if record.GetRetracts() == 0 && record.GetLog().Omitted() {
					appended++
				}
			}
			kept := 0 // live logs without data
			if c.bytes > event.MaxData {
				kept = logs
			}
			if counted := p.metric("logs_without_data_total"); logs < 5 || counted != float64(appended) ||
				p.Status().LogsWithoutData != uint64(kept) {
				t.Errorf("%d logs; %d without data, counted %v; the status reports %d of %d", logs, appended, counted,
					p.Status().LogsWithoutData, kept)
			}
			if c.depth > 100 && c.bytes > event.MaxData && appended <= kept {
				t.Error("no log without data was reorganised")
			}
			p.halt() // the number belongs to the log, not to a process
			p = r.follow()
			if got := p.Status().LogsWithoutData; got != uint64(kept) {
				t.Errorf("after a restart the status reports %d of %d logs without data", got, kept)
			}
			if published := r.published(); len(published) > 0 {
				t.Errorf("%d referrals of logs that name no partner", len(published))
			}
		})
	}
}
