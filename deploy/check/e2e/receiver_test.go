package e2e

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
	"time"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	tlsreceiver "github.com/navlog/navlog/deploy/testkit/receiver"
)

// tolerance is how far a delivery's timestamp may differ from the receiver's clock, according to the API document.
const tolerance = 300 * time.Second

// A receiver is the partners' end of the webhooks. It checks signatures by hand, remembers every delivery, and responds
// with 200, except for the first attempt of each partner's first event, which gets a 500 so that it must be retried.
type receiver struct {
	*tlsreceiver.Server
	secrets map[string]string // by path
	ids     map[string]uint32

	mu         sync.Mutex
	deliveries []delivery
	faults     []string
	refused    map[string]string // by path: the event that was refused once
}

// A delivery is one POST with a correct signature.
type delivery struct {
	partner uint32
	id      string
	body    string
	status  int // status of the response
}

// newReceiver starts a receiver, which writes its CA certificate to dir.
func newReceiver(dir string) (_ *receiver, err error) {
	r := &receiver{secrets: map[string]string{}, ids: map[string]uint32{}, refused: map[string]string{}}
	r.Server, err = tlsreceiver.Serve(dir, http.HandlerFunc(r.receive))
	return r, err
}

func (r *receiver) url(path string) string { return "https://" + r.Address + path }

// urlFor registers a path for a partner and returns its URL.
func (r *receiver) urlFor(p oracle.Partner) string {
	path := fmt.Sprintf("/hooks/%d", p.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path], r.ids[path] = p.SigningSecret, p.ID
	return r.url(path)
}

// numbered returns a partner's id as a JSON number.
func numbered(partner uint32) json.Number {
	return json.Number(strconv.FormatUint(uint64(partner), 10))
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	path := request.URL.RequestURI()
	if err != nil {
		return // the sender was killed while sending
	}
	if fault := r.check(path, request, body); fault != "" {
		r.faults = append(r.faults, fmt.Sprintf("%s %s: %s; the headers are %v, the body is %s", request.Method, path, fault, request.Header, body))
		http.Error(w, fault, http.StatusBadRequest)
		return
	}
	d := delivery{r.ids[path], request.Header.Get("X-Service-Event-Id"), string(body), http.StatusOK}
	if _, done := r.refused[path]; !done {
		r.refused[path] = d.id
		d.status = http.StatusInternalServerError
	}
	r.deliveries = append(r.deliveries, d)
	w.WriteHeader(d.status)
}

// check returns what is wrong with the request, except for the content of its body, or "".
func (r *receiver) check(path string, request *http.Request, body []byte) string {
	h := request.Header
	secret, known := r.secrets[path]
	if !known {
		return "no partner has this URL"
	}
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
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", stamp, body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); h.Get("X-Service-Signature") != want {
		return "X-Service-Signature should be " + want
	}
	for _, name := range []string{"X-Service-Event-Id", "X-Service-Event-Type", "X-Service-Timestamp", "X-Service-Signature"} {
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
	if event["partnerId"] != numbered(r.ids[path]) {
		return "the event is another partner's"
	}
	return ""
}

// accepted returns, by event id, how many deliveries got a 200, and the body of the last one.
func (r *receiver) accepted() (counts map[string]int, bodies map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts, bodies = map[string]int{}, map[string]string{}
	for _, d := range r.deliveries {
		if d.status == http.StatusOK {
			counts[d.id]++
			bodies[d.id] = d.body
		}
	}
	return counts, bodies
}

// compare returns every difference between the accepted and the expected events. If repeats is true, an event may have
// been accepted more than once: after a kill it is unknown which of the last ones arrived.
func (r *receiver) compare(expected map[string]oracle.Object, repeats bool) []string {
	counts, bodies := r.accepted()
	r.mu.Lock()
	defer r.mu.Unlock()
	found := slices.Clone(r.faults)
	first := map[string]string{}
	for _, d := range r.deliveries {
		if before, ok := first[d.id]; ok && before != d.body {
			found = append(found, fmt.Sprintf("event %s came as %s and as %s", d.id, before, d.body))
		}
		first[d.id] = d.body
	}
	for _, id := range slices.Sorted(maps.Keys(expected)) {
		if counts[id] == 0 {
			found = append(found, fmt.Sprintf("event %s never came: %s", id, oracle.Show(expected[id])))
			continue
		}
		if counts[id] > 1 && !repeats {
			found = append(found, fmt.Sprintf("event %s was accepted %d times", id, counts[id]))
		}
		body, err := oracle.Tree([]byte(bodies[id]))
		if err != nil {
			found = append(found, fmt.Sprintf("event %s: %v", id, err))
		}
		for _, line := range oracle.Diff(expected[id], body) {
			found = append(found, fmt.Sprintf("event %s: %s", id, line))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(first)) {
		if _, ok := expected[id]; !ok {
			found = append(found, fmt.Sprintf("event %s should not be: %s", id, first[id]))
		}
	}
	return found
}

// refusals counts the attempts that were refused on purpose.
func (r *receiver) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.refused)
}
