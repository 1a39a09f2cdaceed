package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/schemas/certs"
)

// threeEvents returns two events of partner 1 and one of partner 2.
func threeEvents() map[string]oracle.Object {
	events := map[string]oracle.Object{}
	for id, partner := range map[string]uint32{"a": 1, "b": 1, "c": 2} {
		events[id] = oracle.Object{"id": id, "type": "deposit.referral", "createdAt": "2026-01-01T00:03:00.000Z",
			"partnerId": json.Number(fmt.Sprint(partner)), "data": oracle.Object{"shares": "45"}}
	}
	return events
}

// faultySender is a sender of webhooks that makes mistakes on demand.
type faultySender struct {
	t      *testing.T
	r      *Receiver
	client *http.Client
}

func newPupil(t *testing.T) *faultySender {
	t.Helper()
	r := NewReceiver(t)
	trust, err := certs.Files{CA: r.CAFile}.Config()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	t.Cleanup(client.CloseIdleConnections)
	for id := uint32(1); id <= 2; id++ {
		r.Expect(oracle.Partner{ID: id, SigningSecret: secretOf(id)})
	}
	r.Refuse(func(_ uint32, event string, attempt int) bool { return attempt == 1 && event != "b" })
	return &faultySender{t, r, client}
}

func secretOf(id uint32) string { return fmt.Sprint("whsec_", id) }

// send posts a body to a partner and returns the status of the response.
func (p *faultySender) send(partner uint32, event oracle.Object, change func(http.Header)) int {
	p.t.Helper()
	return p.sendTo(p.r.URL(oracle.Partner{ID: partner}), partner, event, change)
}

func (p *faultySender) sendTo(url string, partner uint32, event oracle.Object, change func(http.Header)) int {
	p.t.Helper()
	body, err := json.Marshal(event)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secretOf(partner)))
	mac.Write([]byte(stamp + "." + string(body)))
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("X-Service-Event-Id", fmt.Sprint(event["id"]))
	h.Set("X-Service-Event-Type", fmt.Sprint(event["type"]))
	h.Set("X-Service-Timestamp", stamp)
	h.Set("X-Service-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	change(h)
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func asIs(http.Header) {}

// sendAll sends every event until it is accepted: some are refused once.
func (p *faultySender) sendAll(events map[string]oracle.Object) (refusals int) {
	p.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(events)) {
		partner, err := strconv.Atoi(fmt.Sprint(events[id]["partnerId"]))
		if err != nil {
			p.t.Fatal(err)
		}
		for p.send(uint32(partner), events[id], asIs) != http.StatusOK {
			refusals++
		}
	}
	return refusals
}

func TestReceiverAcceptsWhatIsRight(t *testing.T) {
	p := newPupil(t)
	if refusals := p.sendAll(threeEvents()); refusals != 2 || p.r.Refused() != 2 || p.r.Count() != 3 {
		t.Errorf("%d attempts were refused, or %d, and %d events accepted", refusals, p.r.Refused(), p.r.Count())
	}
	if found := p.r.Compare(threeEvents(), false); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}

func TestReceiverReportsEvents(t *testing.T) {
	some := slices.Sorted(maps.Keys(threeEvents()))[0]
	partner := func(e oracle.Object) uint32 {
		n, err := strconv.Atoi(fmt.Sprint(e["partnerId"]))
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	for name, try := range map[string]struct {
		sent    func(events map[string]oracle.Object)             // changes the events that are sent
		more    func(p *faultySender, e map[string]oracle.Object) // sends more requests
		repeats bool
		want    string
	}{
		"a missing event": {sent: func(e map[string]oracle.Object) { delete(e, some) },
			want: "event " + some + " never came"},
		"another field": {sent: func(e map[string]oracle.Object) { e[some]["createdAt"] = "2027" },
			want: "event " + some + `: createdAt: expected `},
		"a missing field": {sent: func(e map[string]oracle.Object) { delete(e[some]["data"].(oracle.Object), "shares") },
			want: "event " + some + ": data.shares: expected"},
		"an extra field": {sent: func(e map[string]oracle.Object) { e[some]["data"].(oracle.Object)["x"] = "y" },
			want: "event " + some + ": data.x: expected no such field"},
		"an event too many": {sent: func(e map[string]oracle.Object) {
			e["other"] = oracle.Object{"id": "other", "type": "deposit.referral", "partnerId": json.Number("1")}
		}, want: "event other does not belong to a final block"},
		"an event twice": {more: func(p *faultySender, e map[string]oracle.Object) { p.send(partner(e[some]), e[some], asIs) },
			want: "event " + some + " was accepted 2 times"},
		"an event twice where that may be, but with other bytes": {more: func(p *faultySender, e map[string]oracle.Object) {
			e[some]["createdAt"] = "2027"
			p.send(partner(e[some]), e[some], asIs)
		}, repeats: true, want: "event " + some + " came with different bodies"},
	} {
		p := newPupil(t)
		events := threeEvents()
		if try.sent != nil {
			try.sent(events)
		}
		p.sendAll(events)
		if try.more != nil {
			try.more(p, events)
		}
		found := p.r.Compare(threeEvents(), try.repeats)
		if !slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, try.want) }) {
			t.Errorf("%s: found %q, want %q", name, found, try.want)
		}
	}
	p := newPupil(t)
	p.sendAll(threeEvents())
	p.sendAll(threeEvents())
	if found := p.r.Compare(threeEvents(), true); len(found) != 0 {
		t.Errorf("repeats that are allowed: found %q", found)
	}
}

func TestReceiverReportsRequests(t *testing.T) {
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for name, try := range map[string]struct {
		partner uint32
		change  func(http.Header)
		want    string
	}{
		"another partner's path": {2, asIs, "the event is another partner's"},
		"an unknown path":        {3, asIs, "no partner has this URL"},
		"a wrong signature": {1, set("X-Service-Signature", "sha256="+strings.Repeat("0", 64)),
			"X-Service-Signature should be"},
		"a signature in capitals": {1,
			func(h http.Header) { h.Set("X-Service-Signature", strings.ToUpper(h.Get("X-Service-Signature"))) },
			"X-Service-Signature should be"},
		"an old timestamp":         {1, set("X-Service-Timestamp", "1"), "too far from the clock"},
		"a timestamp that is none": {1, set("X-Service-Timestamp", "now"), "too far from the clock"},
		"another timestamp": {1, set("X-Service-Timestamp", strconv.FormatInt(time.Now().Unix()-9, 10)),
			"X-Service-Signature should be"},
		"another id":           {1, set("X-Service-Event-Id", "x"), "are not those of the body"},
		"another type":         {1, set("X-Service-Event-Type", "x"), "are not those of the body"},
		"another content type": {1, set("Content-Type", "text/plain"), "the content type is text/plain"},
		"two signatures": {1, func(h http.Header) { h.Add("X-Service-Signature", "x") },
			"X-Service-Signature is there 2 times"},
	} {
		p := newPupil(t)
		event := oracle.Object{"id": "a", "type": "deposit.referral", "partnerId": json.Number("1")}
		if status := p.send(try.partner, event, try.change); status != http.StatusBadRequest {
			t.Errorf("%s: answered with %d", name, status)
		}
		found := p.r.Compare(nil, true)
		if len(found) != 1 || !strings.Contains(found[0], try.want) {
			t.Errorf("%s: found %q, want one with %q", name, found, try.want)
		}
	}
}

// A test event may arrive at a URL that was replaced, an event of the chain may not.
func TestReceiverOfAReplacedURL(t *testing.T) {
	p, one := newPupil(t), oracle.Partner{ID: 1}
	event := func(id, kind string) oracle.Object {
		return oracle.Object{"id": id, "type": kind, "partnerId": json.Number("1")}
	}
	p.r.ExpectTest(one)
	p.r.ExpectTest(one)
	if status := p.sendTo(p.r.Replaced(one), 1, event("s", "webhook.test"), asIs); status != http.StatusOK || p.r.Tested(one) {
		t.Errorf("a test event at the replaced URL: status %d, at the newest one: %t", status, p.r.Tested(one))
	}
	if status := p.send(1, event("t", "webhook.test"), asIs); status != http.StatusOK || !p.r.Tested(one) {
		t.Errorf("a test event at the newest URL: status %d, noticed: %t", status, p.r.Tested(one))
	}
	if found := p.r.Compare(nil, false); len(found) != 0 {
		t.Errorf("found %q in test events", found)
	}
	p.sendTo(p.r.Replaced(one), 1, event("a", "deposit.referral"), asIs)
	if found := p.r.Compare(nil, false); len(found) != 1 || !strings.Contains(found[0], "no partner has this URL") {
		t.Errorf("an event at the replaced URL: found %q", found)
	}
}

// The test events that arrive are those that were requested.
func TestReceiverCountsTestEvents(t *testing.T) {
	one := oracle.Partner{ID: 1}
	send := func(p *faultySender, id string) {
		p.send(1, oracle.Object{"id": id, "type": "webhook.test", "partnerId": json.Number("1")}, asIs)
	}
	for name, try := range map[string]struct {
		requested int
		came      []string
		repeats   bool
		want      string
	}{
		"not requested":  {0, []string{"t"}, false, "1 test events of partner 1 came, and 0 were requested"},
		"too many":       {1, []string{"s", "t"}, false, "2 test events of partner 1 came, and 1 were requested"},
		"lost":           {2, []string{"t"}, false, "1 of the 2 test events of partner 1 never came"},
		"repeated":       {1, []string{"t", "t"}, false, "test event t was accepted 2 times"},
		"may repeat":     {1, []string{"t", "t"}, true, ""},
		"as requested":   {2, []string{"s", "t"}, false, ""},
		"sent elsewhere": {2, []string{"t"}, false, "2 of the 3 test events of partner 1 never came"},
	} {
		p := newPupil(t)
		for range try.requested {
			p.r.ExpectTest(one)
		}
		for _, id := range try.came {
			send(p, id)
		}
		if name == "sent elsewhere" { // before the next one was requested
			p.r.AcceptLost(one)
			p.r.ExpectTest(one)
		}
		if found := strings.Join(p.r.Compare(nil, try.repeats), "\n"); found != try.want {
			t.Errorf("%s: found %q, want %q", name, found, try.want)
		}
	}
}
