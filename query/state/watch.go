package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// lookTimeout limits a look at the registry, and a look at the read models for a snapshot.
	lookTimeout = 2 * time.Second
	// TrustedFor is the maximum age of the last look for the program to be ready.
	TrustedFor = 5 * time.Second
)

// Watcher keeps the snapshot that answers are pinned to.
type Watcher struct {
	// ChainID is the chain that is served; vaults of other chains are rejected.
	ChainID uint64
	// Conns is the maximum number of concurrent queries.
	Conns int
	// LongestAnswer is how long an answer that has begun may continue to read.
	LongestAnswer time.Duration
	Now           func() time.Time
	LookTimeout   time.Duration

	readModel readmodel.Config
	pool      *pgxpool.Pool
	queries   Queries
	log       *slog.Logger
	listener  listener

	snapshot atomic.Pointer[Snapshot]
	changed  atomic.Pointer[chan struct{}] // closed when the snapshot changes
	seen     atomic.Int64                  // when the read models were last seen, Unix nanoseconds
	fault    atomic.Pointer[error]         // why the last look at them failed
	registry atomic.Pointer[Registry]

	mu      sync.Mutex
	looking sync.Mutex // one look at a time
	touched touched
	sources map[int32]*Source
	left    map[int32]time.Time // when the last answer was pinned to a source that gets no new ones
}

// Queries are what a watcher reads from the registry: *db.Queries.
type Queries interface {
	ListGenerations(context.Context) ([]db.ListGenerationsRow, error)
	ListStatus(context.Context) ([]db.ListStatusRow, error)
	ListUptime(context.Context) ([]db.ListUptimeRow, error)
}

// New returns a watcher that has not looked yet. It listens for notifications on a connection of pool.
func New(chainID uint64, conns int, longestAnswer time.Duration, readModel readmodel.Config, pool *pgxpool.Pool,
	queries Queries,
	log *slog.Logger) *Watcher {
	w := &Watcher{
		ChainID: chainID, Conns: conns, LongestAnswer: longestAnswer, Now: time.Now, LookTimeout: lookTimeout,
		readModel: readModel, pool: pool, queries: queries, log: log, listener: newListener(),
		sources: make(map[int32]*Source), left: make(map[int32]time.Time),
	}
	changed := make(chan struct{})
	w.changed.Store(&changed)
	w.registry.Store(new(Registry))
	return w
}

// Snapshot returns the newest snapshot, or nil if there is nothing to serve.
func (w *Watcher) Snapshot() *Snapshot { return w.snapshot.Load() }

// Changed returns a channel that is closed when the snapshot changes. To wait for a change, call it before Snapshot.
func (w *Watcher) Changed() <-chan struct{} { return *w.changed.Load() }

// Seen returns when the read models were last seen in the state that the snapshot shows, and why the last look at
// them failed.
func (w *Watcher) Seen() (at time.Time, fault error) {
	if err := w.fault.Load(); err != nil {
		fault = *err
	}
	return time.Unix(0, w.seen.Load()), fault
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { w.watchRegistry(ctx); return nil })
	group.Go(func() error { w.listen(ctx); return nil })
	group.Go(func() error { w.follow(ctx); return nil })
	return group.Wait()
}

// follow looks when it is notified of new rows, and otherwise at intervals.
func (w *Watcher) follow(ctx context.Context) {
	var last string
	for notified := false; ; {
		message, before := "", w.snapshot.Load()
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			message = err.Error()
		}
		if message != last { // log once when it fails and once when it recovers, not ten times per second
			if message != "" {
				w.log.Warn("read models not readable", "error", message)
			} else {
				w.log.Info("read models readable")
			}
			last = message
		}
		wait := time.NewTimer(w.listener.pause(notified, message == "" && before == w.snapshot.Load()))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-w.listener.notified:
			notified = true
		case <-wait.C:
			notified = false
		}
		wait.Stop()
	}
}

// Newer returns a snapshot that is newer than one that was found to be outdated; it looks unless there has been a
// look since. It returns nil if there is nothing to serve.
func (w *Watcher) Newer(ctx context.Context, than *Snapshot) (*Snapshot, error) {
	w.looking.Lock()
	defer w.looking.Unlock()
	if s := w.snapshot.Load(); s != than {
		return s, nil
	}
	if err := w.look(ctx); err != nil && w.snapshot.Load() != nil {
		return nil, err
	}
	return w.snapshot.Load(), nil // without one, the error is only the reason why there is nothing to serve
}

// Look looks once at the generation that the registry names, and publishes the result.
func (w *Watcher) Look(ctx context.Context) error {
	w.looking.Lock()
	defer w.looking.Unlock()
	return w.look(ctx)
}

// look is Look for a caller that holds looking.
func (w *Watcher) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, w.LookTimeout)
	defer cancel()
	defer func() { w.fault.Store(&err) }()
	w.forget()
	registry := w.registry.Load()
	if !registry.Known {
		return plainError{text: "the registry has not reported yet which generation is live"}
	}
	if registry.fault != "" && !w.Now().Before(registry.until) {
		w.show(nil)
		return plainError{text: registry.fault}
	}
	source, err := w.source(registry)
	if err != nil {
		return err
	}
	now, was := w.Now(), w.snapshot.Load()
	s, err := w.snapshotOf(ctx, source, registry.building, was)
	if plain, _ := errors.AsType[plainError](err); plain.empty { // a reorganisation may retract every block
		w.show(nil)
	}
	if err != nil {
		return err
	}
	w.seen.Store(now.UnixNano()) // before the snapshot is published, so that no snapshot is visible that was never seen
	if s == was {
		return nil
	}
	w.show(s)
	if s.unlikeAssets() && !was.unlikeAssets() {
		w.log.Warn("the assets of the vaults differ in decimals: a user's and a partner's totals add units of different size",
			"vaults", len(s.Vaults))
	}
	return nil
}

// snapshotOf reads the newest state of a generation; it returns was if nothing changed.
func (w *Watcher) snapshotOf(
	ctx context.Context, source *Source, building bool, was *Snapshot,
) (s *Snapshot, err error) {
	known := was != nil && was.Generation == source.ID && was.Partial == building
	if building {
		s, err = lookBuilding(ctx, source)
	} else {
		after := readmodel.Never // for a newly served generation, units before its cursor do not matter
		if known {
			after = was.Seq
		}
		s, err = look(ctx, source, after, w.touched.add)
	}
	if err != nil {
		return nil, err
	}
	if known && was.Seq == s.Seq && was.Rewrites == s.Rewrites {
		return was, nil
	}
	s.ChainID, s.touched = w.ChainID, &w.touched
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	if known && !building && s.Seq > was.Seq {
		w.touched.reach(s.Seq)
	} else {
		w.touched.begin(s.Generation, s.Seq) // another generation, or one that lost its newest part
	}
	return s, nil
}

// show makes a snapshot the one that answers are pinned to; nil for none.
func (w *Watcher) show(s *Snapshot) {
	was := w.snapshot.Load()
	if s == nil && was == nil {
		return // still none: there is nothing to signal
	}
	w.mu.Lock()
	if was != nil { // before the new one is published: answers still read one of the two
		w.left[was.Generation] = w.Now()
	}
	if s != nil {
		delete(w.left, s.Generation)
	}
	w.mu.Unlock()
	w.snapshot.Store(s)
	changed := make(chan struct{})
	close(*w.changed.Swap(&changed))
}

// source returns the connection to the served generation, which is opened on first use.
func (w *Watcher) source(registry *Registry) (*Source, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := registry.served
	if s := w.sources[id]; s != nil {
		return s, nil
	}
	mapped, err := mapping.Decode(registry.records)
	if err != nil {
		return nil, fmt.Errorf("generation %d: %w: start a newer navlog", id, err)
	}
	database := w.readModel.Database(id)
	conn, err := w.readModel.OpenReader(database, w.Conns)
	if err != nil {
		return nil, err
	}
	w.sources[id] = &Source{ID: id, Database: database, conn: conn, mapped: mapped}
	return w.sources[id], nil
}

// Leaving returns the generations that no new answer is pinned to but that an earlier one may still be reading, and
// for how long at most.
func (w *Watcher) Leaving() map[int32]time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[int32]time.Duration)
	for id, at := range w.left {
		if more := w.LongestAnswer - w.Now().Sub(at); more > 0 {
			out[id] = more
		}
	}
	return out
}

// forget closes the connections to generations that no answer can still be reading.
func (w *Watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, at := range w.left {
		if w.Now().Sub(at) < w.LongestAnswer {
			continue
		}
		delete(w.left, id)
		if s := w.sources[id]; s != nil {
			_ = s.conn.Close() // no answer reads it any more
			delete(w.sources, id)
		}
	}
}

// Close closes all connections to the engines. Run does so at its end.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.sources {
		_ = s.conn.Close()
		delete(w.sources, id)
	}
}

// plainError is a reason in navlog's own words, which is safe to publish: an engine's errors contain addresses and
// users.
type plainError struct {
	text  string
	empty bool // the generation has nothing to serve
}

func (e plainError) Error() string { return e.text }

// Plain returns the part of an error that is safe to publish, or "" if there is none.
func Plain(err error) string {
	plain, _ := errors.AsType[plainError](err)
	return plain.text
}

const (
	// lookEvery is the pause between looks at the read models while there are no notifications of changes, lookRarely
	// while project sends them.
	lookEvery  = 100 * time.Millisecond
	lookRarely = time.Second
	// listenAgain is the pause before the listener reconnects to PostgreSQL.
	listenAgain = time.Second
)

// listener receives notifications from project that it has written, so that answers do not have to wait for the next
// look, and fewer looks find nothing new.
type listener struct {
	notified  chan struct{} // has room for one
	listening *atomic.Bool
	every     time.Duration // lookEvery, except in tests
	rarely    time.Duration // lookRarely, except in tests
	missed    bool          // the last change came without a notification; only follow uses it
}

func newListener() listener {
	return listener{notified: make(chan struct{}, 1), listening: new(atomic.Bool), every: lookEvery, rarely: lookRarely}
}

func (w *Watcher) notify() {
	select {
	case w.listener.notified <- struct{}{}:
	default: // a look is already pending
	}
}

// pause returns how long the next look may wait. notified means that the last look was triggered by a notification, and
// same that it found nothing new. A change without a notification means that notifications get lost.
func (l *listener) pause(notified, same bool) time.Duration {
	if notified {
		l.missed = false
	} else if !same {
		l.missed = true
	}
	if l.listening.Load() && !l.missed {
		return l.rarely
	}
	return l.every
}

// listen receives project's notifications until ctx ends.
func (w *Watcher) listen(ctx context.Context) {
	for {
		err := registry.ListenWritten(ctx, w.pool, func() {
			w.listener.listening.Store(true)
			w.notify() // for notifications that were missed before
		}, func(generation int32) {
			if w.registry.Load().served == generation {
				w.notify()
			}
		})
		if ctx.Err() != nil {
			return
		}
		if w.listener.listening.Swap(false) {
			w.log.Warn("notifications from project lost, polling the read models more often", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}
