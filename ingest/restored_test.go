package ingest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
)

// ownKafka is an embedded broker only for the test: it shares no topic with other tests.
func ownKafka(t testing.TB) []string {
	t.Helper()
	k, err := engines.StartKafka(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return []string{k.Addr}
}

// Kafka is wiped, and its log restored from a backup that was made while ingest was running: the log keeps its id and
// its records, ingest continues it, and every attributed event is in the referral topics once. An ingest that starts in
// the middle of the restore appends nothing, and continues when the restore ends.
func TestIngestContinuesARestoredLog(t *testing.T) {
	for name, broker := range map[string][2]func(testing.TB) []string{
		"embedded":        {kfake, ownKafka},
		"to Apache Kafka": {kfake, enginetest.ApacheKafka}, "from Apache Kafka": {enginetest.ApacheKafka, kfake},
	} {
		if testing.Short() && name != "embedded" {
			continue // the race detector sees the same goroutines
		}
		t.Run(name, func(t *testing.T) {
			r, dir := newRig(t, broker[0]), t.TempDir()
			r.steps(30)
			p := r.follow()
			if _, err := backup.Write(r.ctx, r.config.ID, r.kafka, dir, nil); err != nil {
				t.Fatal(err)
			}
			r.steps(20)
			r.reorg(3)
			r.steps(5)
			p.caughtUp()
			written, err := backup.Write(r.ctx, r.config.ID, r.kafka, dir, nil)
			r.must(err)
			p.halt()
			was, before := r.cursor(), r.topic(chainlog.LogTopic(r.config.ID))

			r.kafka.Brokers = broker[1](t)
			ctx, interrupt := context.WithCancel(r.ctx)
			_, err = backup.Restore(ctx, r.config.ID, r.kafka, dir, func(what string, done, _ uint64) {
				if strings.HasPrefix(what, "restore") && done == 1 {
					interrupt()
				}
			})
			r.settle()
			if !errors.Is(err, context.Canceled) || !backup.Restoring(r.cursor().GetFrozen()) {
				t.Fatalf("interrupted with %v, the cursor is %v", err, r.cursor())
			}
			p = r.start()
			p.until("ingest that waits for the restore", func(st status.Status) bool {
				return st.State == status.Frozen && strings.Contains(st.Reason, "run `navlog restore` again") &&
					!strings.Contains(st.Reason, "ingest resume")
			})
			if _, err := r.resume(true); err == nil || !strings.Contains(err.Error(), "navlog restore") {
				t.Errorf("resumption of a restore: %v", err)
			}
			restored, err := backup.Restore(r.ctx, r.config.ID, r.kafka, dir, nil)
			if err != nil || restored.Done != restored.Segments-1 || restored.Seal != written.Seal {
				t.Fatalf("the rest of the restore: %+v, %v", restored, err)
			}
			p.caughtUp()
			r.steps(20)
			p.caughtUp()
			r.verify()
			p.halt()
			after := r.topic(chainlog.LogTopic(r.config.ID))
			if now := r.cursor(); !bytes.Equal(now.GetLogId(), was.GetLogId()) || len(after) <= len(before) {
				t.Fatalf("the log %x has %d records, and was the log %x with %d", now.GetLogId(), len(after), was.GetLogId(),
					len(before))
			}
			for i := range before[:written.Seq] {
				if !bytes.Equal(before[i].Value, after[i].Value) || !bytes.Equal(before[i].Key, after[i].Key) {
					t.Fatalf("record %d is another one", i+1)
				}
			}
		})
	}
}
