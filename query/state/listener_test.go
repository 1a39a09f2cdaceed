package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// Notifications of project about the live generation are received, also after the connection was lost and restored,
// and in between the listener is known to be off.
func TestListener(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Live)
	w.LookAtRegistry(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Listen(ctx); close(done) }()
	receives := func(generation int32) bool {
		select {
		case <-w.Notified():
		default:
		}
		if err := registry.AnnounceWritten(ctx, pool, generation); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Notified():
			return true
		case <-time.After(time.Second):
			return false
		}
	}
	wait.For(t, "the listener is connected", w.Listening)
	wait.For(t, "a notification is received", func() bool { return receives(w.Gen.ID) })
	wait.For(t, "a notification of another generation, or an older one, is ignored",
		func() bool { return !receives(w.Gen.ID + 1_000_000) })
	if _, err := pool.Exec(ctx,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the listener is disconnected", func() bool { return !w.Listening() })
	wait.For(t, "a notification is received again", func() bool { return w.Listening() && receives(w.Gen.ID) })
	stop()
	<-done
}

// A server shows what was announced without waiting for its next look.
func TestAnnouncedIsShown(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Live)
	w.LookAtRegistry(t.Context())
	w.SetPauses(time.Hour, time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Follow(ctx); close(done) }()
	go w.Listen(ctx)
	defer func() { stop(); <-done }()
	wait.For(t, "the listener is connected", w.Listening)
	for block := uint64(12); block < 16; block++ {
		w.Log.Append(readtest.BlockRecord(block))
		w.Write()
		wait.For(t, "the block is shown", func() bool {
			if err := registry.AnnounceWritten(ctx, pool, w.Gen.ID); err != nil {
				t.Error(err)
			}
			return w.Snapshot() != nil && w.Snapshot().Block == block
		})
	}
}
