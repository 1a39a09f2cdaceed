package fleet

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/schemas/webhook"
)

// A Receiver is the partners' end of the webhooks. It accepts every event with a valid signature, and remembers it,
// unless Refuse says otherwise.
type Receiver struct {
	*receiver.Server
	secrets map[string]string // by path

	mu      sync.Mutex
	came    map[string][]string // bodies of the accepted requests, by event id
	refuse  func(path, event string, attempt int) bool
	refused map[string]int // requests with a valid signature that were refused, by event id
	faults  []string
}

func newReceiver(dir string) (r *Receiver, err error) {
	r = &Receiver{secrets: map[string]string{}, came: map[string][]string{}, refused: map[string]int{}}
	r.Server, err = receiver.Serve(dir, http.HandlerFunc(r.receive))
	return r, err
}

func (r *Receiver) url(path string) string { return "https://" + r.Address + path }

func (r *Receiver) expect(path string, p oracle.Partner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path] = p.SigningSecret
}

func (r *Receiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was cut off
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := request.Header
	secret, signature := r.secrets[request.URL.Path], h.Get(webhook.HeaderSignature)
	err = webhook.Verify(secret, h.Get(webhook.HeaderTimestamp), signature, body, time.Now())
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v", request.URL.Path, err))
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	id := h.Get(webhook.HeaderEventID)
	if r.refuse != nil && r.refuse(request.URL.Path, id, r.refused[id]+1) {
		r.refused[id]++
		http.Error(w, "the receiver fails on purpose", http.StatusServiceUnavailable)
		return
	}
	r.came[id] = append(r.came[id], string(body))
}

// Refuse makes the receiver respond with 503 to the requests for which refuse returns true, given the path, the event's
// id and the number of the attempt, from 1. The calls are not concurrent.
func (r *Receiver) Refuse(refuse func(path, event string, attempt int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// Refused returns how many requests were refused on purpose.
func (r *Receiver) Refused() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.refused {
		n += times
	}
	return n
}

// Count returns how many different events were accepted.
func (r *Receiver) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.came)
}

// judge compares the accepted events with the expected ones. An event that was accepted more than once with the same
// bytes is a repetition.
func (r *Receiver) judge(v *Verdict, expected map[string]oracle.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		v.differs("a webhook was rejected: %s", fault)
	}
	for id, event := range expected {
		bodies := r.came[id]
		if len(bodies) == 0 {
			v.Lost++
			v.differs("event %s never came: %s", id, oracle.Show(event))
			continue
		}
		v.Events++
		v.Repeated += len(bodies) - 1
		if slices.ContainsFunc(bodies, func(body string) bool { return body != bodies[0] }) {
			v.Doubled++
			v.differs("event %s came with different bodies", id)
		}
		body, err := oracle.Tree([]byte(bodies[0]))
		if err != nil {
			v.differs("event %s: %v", id, err)
		} else if found := oracle.Diff(event, body); len(found) > 0 {
			v.differs("event %s: %s", id, strings.Join(found, "; "))
		}
	}
	for id, bodies := range r.came {
		if _, ok := expected[id]; !ok {
			v.Doubled++
			v.differs("event %s does not belong to a final block: %s", id, bodies[0])
		}
	}
}
