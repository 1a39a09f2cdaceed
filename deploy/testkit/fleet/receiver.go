package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/receiver"
)

// tolerance is how far a request's timestamp may differ from the receiver's clock, according to the API document.
const tolerance = 300 * time.Second

// A Receiver is the partners' end of the webhooks. It checks each request by hand, without the code of navlog, and
// remembers its event. It accepts the requests that are right, unless Refuse says otherwise.
type Receiver struct {
	*receiver.Server

	mu       sync.Mutex
	partners map[string]oracle.Partner // by path
	came     map[string]*arrivals      // by event id
	tests    map[uint32]*tests         // by partner id
	refuse   func(partner uint32, event string, attempt int) bool
	faults   []string
}

// arrivals are the requests with an event that were right.
type arrivals struct {
	accepted, refused int
	bodies            []string // that differ; the newest last
}

// tests are the test events of a partner.
type tests struct {
	requested int
	came      map[string]int // how often each arrived, by event id
	atNewest  bool           // one arrived at the URL for the partner's events
	mayLack   int            // how many may have been sent to a URL that the partner had before
}

// NewReceiver starts a receiver, which ends with the test.
func NewReceiver(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{partners: map[string]oracle.Partner{}, came: map[string]*arrivals{}, tests: map[uint32]*tests{}}
	var err error
	if r.Server, err = receiver.Serve(t.TempDir(), http.HandlerFunc(r.receive)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func pathOf(p oracle.Partner) string { return fmt.Sprintf("/partners/%d", p.ID) }

// URL returns the URL for a partner's events.
func (r *Receiver) URL(p oracle.Partner) string { return "https://" + r.Address + pathOf(p) }

// Replaced returns another URL of a partner, which it then replaces. Only test events may arrive there, because a
// dispatcher uses a URL for a second after it was replaced.
func (r *Receiver) Replaced(p oracle.Partner) string { return r.URL(p) + "?replaced" }

// Tested reports whether a test event has arrived at the URL for a partner's events.
func (r *Receiver) Tested(p oracle.Partner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tests[p.ID].atNewest
}

// Expect makes the receiver know a partner.
func (r *Receiver) Expect(p oracle.Partner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partners[pathOf(p)] = p
	r.tests[p.ID] = &tests{came: map[string]int{}}
}

// ExpectTest makes the receiver expect another test event of a partner.
func (r *Receiver) ExpectTest(p oracle.Partner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tests[p.ID].requested++
}

// AcceptLost accepts that test events requested so far never come: they were sent to a URL that the partner had before.
func (r *Receiver) AcceptLost(p oracle.Partner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tests[p.ID]
	t.mayLack = t.requested - len(t.came)
}

func (r *Receiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was cut off
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path := request.URL.RequestURI()
	partner, known := r.partners[path]
	test := request.Header.Get("X-Service-Event-Type") == "webhook.test"
	if base, _, replaced := strings.Cut(path, "?replaced"); test && replaced {
		partner, known = r.partners[base]
	}
	fault := "no partner has this URL"
	if known {
		fault = check(partner, request, body)
	}
	if fault != "" {
		r.faults = append(r.faults, fmt.Sprintf("%s %s: %s; the headers are %v, the body is %s",
			request.Method, path, fault, request.Header, body))
		http.Error(w, fault, http.StatusBadRequest)
		return
	}
	id := request.Header.Get("X-Service-Event-Id")
	if test {
		t := r.tests[partner.ID]
		t.came[id]++
		t.atNewest = t.atNewest || path == pathOf(partner)
		return
	}
	a := r.came[id]
	if a == nil {
		a = new(arrivals)
		r.came[id] = a
	}
	if !slices.Contains(a.bodies, string(body)) {
		a.bodies = append(a.bodies, string(body))
	}
	if r.refuse != nil && r.refuse(partner.ID, id, a.refused+1) {
		a.refused++
		http.Error(w, "the receiver fails on purpose", http.StatusServiceUnavailable)
		return
	}
	a.accepted++
}

// check returns what is wrong with a partner's request, except for most of its body, or "".
func check(partner oracle.Partner, request *http.Request, body []byte) string {
	h := request.Header
	if request.Method != http.MethodPost {
		return "the method is not POST"
	}
	if kind := h.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return "the content type is " + kind
	}
	stamp := h.Get("X-Service-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > tolerance {
		return fmt.Sprintf("X-Service-Timestamp %q is too far from the clock", stamp)
	}
	mac := hmac.New(sha256.New, []byte(partner.SigningSecret))
	fmt.Fprintf(mac, "%s.%s", stamp, body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); h.Get("X-Service-Signature") != want {
		return "X-Service-Signature should be " + want
	}
	for _, name := range []string{"X-Service-Event-Id", "X-Service-Event-Type", "X-Service-Timestamp",
		"X-Service-Signature"} {
		if len(h.Values(name)) != 1 {
			return fmt.Sprintf("%s is there %d times", name, len(h.Values(name)))
		}
	}
	value, err := oracle.Tree(body)
	event, ok := value.(oracle.Object)
	if err != nil || !ok {
		return "the body is not a JSON object"
	}
	if event["id"] != h.Get("X-Service-Event-Id") || event["type"] != h.Get("X-Service-Event-Type") {
		return "X-Service-Event-Id and X-Service-Event-Type are not those of the body"
	}
	if event["partnerId"] != json.Number(strconv.FormatUint(uint64(partner.ID), 10)) {
		return "the event is another partner's"
	}
	return ""
}

// Refuse makes the receiver respond with 503 to the requests for which refuse returns true, given the partner, the
// event's id and the number of the attempt, from 1. The calls are not concurrent.
func (r *Receiver) Refuse(refuse func(partner uint32, event string, attempt int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// Refused returns how many requests were refused on purpose.
func (r *Receiver) Refused() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.came {
		n += a.refused
	}
	return n
}

// Count returns how many different events were accepted.
func (r *Receiver) Count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.came {
		n += min(a.accepted, 1)
	}
	return n
}

// Body returns the newest body of an event, or "".
func (r *Receiver) Body(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.came[id]; a != nil {
		return a.bodies[len(a.bodies)-1]
	}
	return ""
}

// Compare returns every difference between the accepted events and the expected ones. If repeats is true, an event may
// have been accepted more than once.
func (r *Receiver) Compare(expected map[string]oracle.Object, repeats bool) []string {
	v := new(Differences)
	r.compareDeliveries(v, expected)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.came)) {
		if n := r.came[id].accepted; n > 1 && !repeats {
			v.differs("event %s was accepted %d times", id, n)
		}
	}
	for _, t := range r.tests {
		for id, n := range t.came {
			if n > 1 && !repeats {
				v.differs("test event %s was accepted %d times", id, n)
			}
		}
	}
	return v.Faults
}

// compareDeliveries compares the accepted events with the expected ones, and counts the test events. An event that was
// accepted more than once with the same bytes is a repetition.
func (r *Receiver) compareDeliveries(v *Differences, expected map[string]oracle.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		v.differs("a webhook was rejected: %s", fault)
	}
	for _, id := range slices.Sorted(maps.Keys(expected)) {
		a := r.came[id]
		if a == nil || a.accepted == 0 {
			v.Lost++
			v.differs("event %s never came: %s", id, oracle.Show(expected[id]))
			continue
		}
		v.Events++
		v.Repeated += a.accepted - 1
		body, err := oracle.Tree([]byte(a.bodies[len(a.bodies)-1]))
		if err != nil {
			v.differs("event %s: %v", id, err)
			continue
		}
		for _, line := range oracle.Diff(expected[id], body) {
			v.differs("event %s: %s", id, line)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.came)) {
		bodies := r.came[id].bodies
		if len(bodies) > 1 {
			v.Doubled++
			v.differs("event %s came with different bodies: %q", id, bodies)
		}
		if _, ok := expected[id]; !ok {
			v.Doubled++
			v.differs("event %s does not belong to a final block: %s", id, bodies[0])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.tests)) {
		switch t := r.tests[id]; {
		case len(t.came)+t.mayLack < t.requested:
			v.differs("%d of the %d test events of partner %d never came", t.requested-len(t.came), t.requested, id)
		case len(t.came) > t.requested:
			v.differs("%d test events of partner %d came, and %d were requested", len(t.came), id, t.requested)
		}
	}
}
