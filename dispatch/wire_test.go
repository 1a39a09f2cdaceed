package dispatch

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
)

// The promised times, unshortened and as a partner sees them: a rejected event comes 1 + 3
// times, at least 1, 5 and 15 s apart, and a POST has a deadline of 10 s. The test does not
// check how much later something happens, because that depends on the machine.
func TestPromisedTimesOnTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the retries do")
	}
	f := newFixture(t)
	refusing := f.receiver(status(http.StatusInternalServerError))
	var mu sync.Mutex
	var hung time.Duration // how long the connection of the first POST was open
	hanging := f.receiver(nil)
	hanging.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		mu.Lock()
		first := hung == 0
		mu.Unlock()
		if !first {
			hanging.serve(w, r)
			return
		}
		buffer := make([]byte, 1<<16)
		for {
			if _, err := r.Body.Read(buffer); err != nil { // the server notices a closed connection only after reading the body
				break
			}
		}
		<-r.Context().Done()
		mu.Lock()
		hung = time.Since(started)
		mu.Unlock()
	})
	hanging.script(ok)
	f.partner(7, refusing.url)
	f.partner(8, hanging.url)
	f.start(func(d *Dispatch) { d.timing, d.shared.Timing = specified(), lane.Specified() })
	f.deposits(7, 1, 2)
	f.deposits(8, 2, 3)
	f.eventually("one event has failed, the other is delivered", func() bool {
		s := f.states()
		return s[registry.Failed] == 1 && s[registry.Delivered] == 1
	})
	calls := refusing.got()
	if len(calls) != 4 {
		t.Fatalf("%d POSTs of a rejected event", len(calls))
	}
	for i, want := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		if gap := calls[i+1].at.Sub(calls[i].at); gap < want {
			t.Errorf("retry %d came %s after the previous POST, but at least %s are promised", i+1, gap, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if hung == 0 {
		t.Error("the POST without a response was not closed on the wire")
	}
	if n := f.number("SELECT duration_ms FROM attempt WHERE error IS NOT NULL AND status IS NULL"); n < 10_000 {
		t.Errorf("the attempt without a response took %d ms", n)
	}
}
