package state

import (
	"context"
	"time"
)

// Access to a watcher's internals for tests of the listener.

func (w *Watcher) SetPauses(every, rarely time.Duration) {
	w.listener.every, w.listener.rarely = every, rarely
}
func (w *Watcher) Listening() bool            { return w.listener.listening.Load() }
func (w *Watcher) Notified() chan struct{}    { return w.listener.notified }
func (w *Watcher) Listen(ctx context.Context) { w.listen(ctx) }
func (w *Watcher) Follow(ctx context.Context) { w.follow(ctx) }

// LookBuilding is lookBuilding.
var LookBuilding = lookBuilding
