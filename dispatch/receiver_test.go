package dispatch

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

// call is a request as the receiver got it.
type call struct {
	at     time.Time
	header http.Header
	body   []byte
	host   string
	path   string
}

func (c call) id() string { return c.header.Get("X-Service-Event-Id") }

// receiver is a partner's server. A script responds: it gets the number of the request, from 1, and the number of
// requests with the same event.
type receiver struct {
	*httptest.Server
	url string

	accepted, open atomic.Int64 // connections: all, and those still open

	mu      sync.Mutex
	calls   []call
	byEvent map[string]int
	now     int // requests in the script
	most    int
	answer  func(w http.ResponseWriter, n, ofEvent int)
}

func ok(w http.ResponseWriter, _, _ int) { w.WriteHeader(http.StatusNoContent) }

func status(code int) func(http.ResponseWriter, int, int) {
	return func(w http.ResponseWriter, _, _ int) { w.WriteHeader(code) }
}

func (f *fixture) receiver(answer func(w http.ResponseWriter, n, ofEvent int)) *receiver {
	f.Helper()
	return f.receiverWith(answer, nil)
}

// partner7 creates partner 7, and returns its receiver, which responds like this.
func (f *fixture) partner7(answer func(w http.ResponseWriter, n, ofEvent int)) *receiver {
	f.Helper()
	r := f.receiver(answer)
	f.partner(7, r.url)
	return r
}

func (f *fixture) receiverWith(
	answer func(w http.ResponseWriter, n, ofEvent int), change func(*httptest.Server),
) *receiver {
	f.Helper()
	r := &receiver{byEvent: map[string]int{}, answer: answer}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if change != nil {
		change(r.Server)
	}
	r.Server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			r.accepted.Add(1)
			r.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			r.open.Add(-1)
		}
	}
	r.StartTLS()
	f.Cleanup(r.Close)
	f.Cleanup(f.release)
	r.url = r.URL + "/hook?token=" + urlToken
	f.caFiles = append(f.caFiles, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})...)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	c := call{at: time.Now(), header: request.Header.Clone(), body: body, host: request.Host, path: request.URL.String()}
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.byEvent[c.id()]++
	n, ofEvent, answer := len(r.calls), r.byEvent[c.id()], r.answer
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
	}()
	answer(w, n, ofEvent)
}

func (r *receiver) script(answer func(w http.ResponseWriter, n, ofEvent int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.most = answer, r.now
}

func (r *receiver) got() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call{}, r.calls...)
}

func (r *receiver) maxConcurrent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}
