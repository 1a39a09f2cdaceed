package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const api = "/api/v1"

// strangerID is a partner that the chain names but navlog does not know: its events are delivered to no one.
const strangerID = 7

// A world is one navlog with its chain, the partners' receiver, and what was observed so far.
type world struct {
	*run
	data     string
	args     []string
	receiver *fleet.Receiver
	settings []string
	client   *oracle.Client
	traffic  *devchain.Scenario
	// pasts: past states are compared too. compared: everything has been asked once.
	pasts, compared bool
	// killed: events may have arrived twice.
	killed bool
}

// A present is the state of the chain when the API was at a seq.
type present struct {
	seq     uint64
	history *oracle.History
}

// newReceiver starts a receiver that refuses the first attempt of each partner's first event, so that it must be
// retried.
func newReceiver(t *testing.T) *fleet.Receiver {
	t.Helper()
	r := fleet.NewReceiver(t)
	refused := map[uint32]bool{}
	r.Refuse(func(partner uint32, _ string, _ int) bool {
		first := !refused[partner]
		refused[partner] = true
		return first
	})
	return r
}

// newWorld starts navlog, with additional arguments for `up`, and registers a URL for both partners.
func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	r := newReceiver(t)
	w := &world{data: openTempDir(t), args: args, receiver: r, client: &oracle.Client{}, settings: []string{
		"NAVLOG_WEBHOOKS_CA_FILE=" + r.CAFile,
		"NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0", "NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0",
		"NAVLOG_HTTP_PARTNER_RATE_LIMIT=1000000",
		"NAVLOG_CHAIN_POLL_INTERVAL=100ms",
		"NAVLOG_CHAIN_PRICES=eth_getLogs:75", // without prices no cost is counted
	}}
	w.start(t)
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	w.run = startUp(t, w.data, w.settings, w.args...)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	w.client.Base, w.client.HTTP = w.API, &http.Client{Transport: transport, Timeout: patience}
	if len(w.Partners) != 2 || len(w.Contracts.Vaults) == 0 {
		t.Fatalf("the ready file holds %d partners and %d vaults", len(w.Partners), len(w.Contracts.Vaults))
	}
	w.traffic = devchain.New(w.RPC, &w.Contracts, 11, []uint32{w.Partners[0].ID, w.Partners[1].ID, strangerID},
		slog.New(slog.DiscardHandler))
}

// register gives each partner the receiver's URL, after trying requests that must be rejected and a URL that is
// overwritten.
func (w *world) register(t *testing.T) {
	t.Helper()
	for _, p := range w.Partners {
		refused := func(status int, code string, details any, kind, body string) {
			refusal := oracle.Object{"code": code, "message": oracle.Text{}, "requestId": oracle.Text{}}
			if details != nil {
				refusal["details"] = details
			}
			w.post(t, p.APIKey, "", kind, body, status, oracle.Object{"ok": false, "error": refusal})
		}
		accepted := func(target string) {
			w.post(t, p.APIKey, "", "application/json", `{"url":"`+target+`"}`, http.StatusOK,
				oracle.Object{"ok": true, "data": oracle.Object{"webhookUrl": target}})
		}
		reason := func(r string) any { return oracle.Object{"reason": r} }
		refused(400, "INVALID_BODY", nil, "application/json", `{"url":`)
		refused(400, "INVALID_WEBHOOK_URL", reason("scheme"), "application/json", `{"url":"http://127.0.0.1/"}`)
		refused(400, "INVALID_WEBHOOK_URL", reason("forbidden_address"), "application/json", `{"url":"https://10.0.0.1/"}`)
		refused(400, "INVALID_WEBHOOK_URL", reason("credentials"), "application/json",
			`{"url":"https://me:secret@127.0.0.1/"}`)
		refused(415, "UNSUPPORTED_MEDIA_TYPE", nil, "text/plain", `{"url":"https://127.0.0.1/"}`)
		w.receiver.Expect(p)
		accepted(w.receiver.Replaced(p))
		accepted(w.receiver.URL(p))
	}
	for _, p := range w.Partners {
		w.reached(t, p)
	}
	w.post(t, "", "", "application/json", `{"url":"https://127.0.0.1/"}`, 401,
		oracle.Object{"ok": false,
			"error": oracle.Object{"code": "UNAUTHORIZED", "message": oracle.Text{}, "requestId": oracle.Text{}}})
}

// reached waits until the dispatcher uses a partner's newest URL, which it may read a second late: until a test event
// arrives there. An event of the chain that was sent earlier would arrive at a URL that the partner no longer has.
func (w *world) reached(t *testing.T, p oracle.Partner) {
	t.Helper()
	next, pause := time.Now(), time.Second
	wait.For(t, "a test event arrives at the newest URL of a partner", func() bool {
		if time.Now().After(next) {
			pause *= 2 // 10 a minute are allowed
			next = time.Now().Add(pause)
			w.receiver.ExpectTest(p)
			w.post(t, p.APIKey, "/test", "application/json", "", http.StatusAccepted,
				oracle.Object{"ok": true, "data": oracle.Object{"eventId": oracle.Text{}}})
		}
		return w.receiver.Tested(p)
	})
	w.receiver.AcceptLost(p) // those at the URL of navlog-dev's own receiver
}

// post sends a request to a path below the partner's webhooks, "" to register one, and compares the response.
func (w *world) post(t *testing.T, key, path, kind, body string, status int, want any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.API+api+"/partner/webhooks"+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("x-api-key", key)
	response, err := w.client.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := oracle.Tree(raw)
	if err != nil {
		t.Fatalf("POST %s: %v", body, err)
	}
	if response.StatusCode != status {
		t.Errorf("POST %s: expected status %d, got %d", body, status, response.StatusCode)
	}
	for _, line := range oracle.Diff(want, got) {
		t.Errorf("POST %s: %s", body, line)
	}
}

// steps runs n steps of the scenario.
func (w *world) steps(t *testing.T, n int) {
	t.Helper()
	if err := w.traffic.Steps(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (w *world) mine(t *testing.T, blocks uint64) {
	t.Helper()
	if err := devchain.Mine(t.Context(), w.RPC, blocks); err != nil {
		t.Fatal(err)
	}
}

func (w *world) read(t *testing.T) *oracle.History {
	t.Helper()
	h, err := oracle.Read(t.Context(), w.RPC, &w.Contracts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// reportAtMost keeps a report readable: a single fault makes many answers wrong.
const reportAtMost = 40

func report(t *testing.T, what string, differences []string) {
	t.Helper()
	for _, line := range differences[:min(len(differences), reportAtMost)] {
		t.Errorf("%s: %s", what, line)
	}
	if more := len(differences) - reportAtMost; more > 0 {
		t.Errorf("%s: and %d more differences", what, more)
	}
}

func (w *world) questions(t *testing.T, h *oracle.History, at oracle.Moment) []oracle.Question {
	t.Helper()
	list, err := h.Questions(at, w.Partners)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// newest waits until the answers about the newest state, all or (if brief) some of them, match the chain, and returns
// the chain and the API's seq.
func (w *world) newest(t *testing.T, brief bool) present {
	t.Helper()
	h := w.read(t)
	list := w.questions(t, h, oracle.Moment{Block: h.Head(), Brief: brief})
	// The list of vaults shows whether it is worth asking for more.
	var last oracle.Asked
	var failed error
	done := func(ctx context.Context) bool {
		for _, part := range [][]oracle.Question{list[:1], list} {
			if last, failed = w.client.Ask(ctx, part); failed != nil || len(last.Differences) > 0 {
				return false
			}
		}
		return len(last.Seqs) == 1
	}
	deadline, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if wait.Poll(deadline, pause, func() (bool, error) { return done(deadline), nil }) != nil {
		if last, failed = w.client.Ask(t.Context(), list); failed != nil {
			t.Fatal(failed)
		}
		report(t, fmt.Sprintf("newest state, block %d, %d seqs", h.Head(), len(last.Seqs)), last.Differences)
		t.FailNow()
	}
	for seq := range last.Seqs {
		return present{seq, h}
	}
	panic("not reached: there is one seq")
}

// agree compares everything: the newest state, past states, and webhooks. The first time it also sends requests that
// must be rejected.
func (w *world) agree(t *testing.T) {
	t.Helper()
	now := w.newest(t, false)
	if !w.compared {
		refusals, err := now.history.Refusals(w.Partners[0])
		if err != nil {
			t.Fatal(err)
		}
		w.same(t, "refusals", refusals)
	}
	if w.pasts {
		w.past(t, now)
	}
	w.compared = true
	w.webhooks(t, now.history)
}

// past compares the past states of this chain. The first time it asks for more.
func (w *world) past(t *testing.T, now present) {
	t.Helper()
	blocks := now.history.Pasts()
	first := !w.compared
	if !first {
		blocks = blocks[:3]
	}
	for i, block := range blocks {
		at := oracle.Moment{Block: block, Seq: now.seq, AsOf: url.Values{"asOfBlock": {fmt.Sprint(block)}}, Brief: i > 0 ||
			!first}
		w.same(t, fmt.Sprint("as of block ", block), w.questions(t, now.history, at))
	}
}

func (w *world) same(t *testing.T, what string, list []oracle.Question) {
	t.Helper()
	outcome, err := w.client.Ask(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	report(t, what, outcome.Differences)
}

// webhooks waits until every event of the final blocks was delivered, and compares the expected events with the
// received ones and with those that the API returns for pulling.
func (w *world) webhooks(t *testing.T, h *oracle.History) {
	t.Helper()
	expected := h.Events(w.Partners)
	var found []string
	wait.Until(t, func() error {
		found = w.receiver.Compare(expected, w.killed)
		if slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, " never came") }) {
			return errors.New(strings.Join(found[:min(len(found), reportAtMost)], "\n"))
		}
		return nil
	})
	report(t, "webhooks", found)
	for _, p := range w.Partners {
		w.pull(t, p, expected)
	}
}

// pull reads a partner's events from the API, which must be the same bytes as the webhooks.
func (w *world) pull(t *testing.T, p oracle.Partner, expected map[string]oracle.Object) {
	t.Helper()
	seen := map[string]bool{}
	for after, more := json.Number("0"), true; more; {
		var answer struct {
			OK   bool
			Data []json.RawMessage
			Meta struct {
				Next    json.Number
				HasMore bool
			}
		}
		w.get(t, p, api+"/partner/events?limit=7&after="+after.String(), &answer)
		for _, raw := range answer.Data {
			var event struct{ ID string }
			if err := json.Unmarshal(raw, &event); err != nil {
				t.Fatal(err)
			}
			if seen[event.ID] || w.receiver.Body(event.ID) != string(raw) {
				t.Errorf("the API gives the event %s, the webhook was %s", raw, w.receiver.Body(event.ID))
			}
			seen[event.ID] = true
		}
		after, more = answer.Meta.Next, answer.Meta.HasMore
		if more && len(answer.Data) == 0 {
			t.Fatalf("after %s there are more events and none comes", after)
		}
	}
	for id, event := range expected {
		if fmt.Sprint(event["partnerId"]) == fmt.Sprint(p.ID) && !seen[id] {
			t.Errorf("the API does not give the event %s", id)
		}
	}
}

func (w *world) get(t *testing.T, p oracle.Partner, path string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.API+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", p.APIKey)
	response, err := w.client.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s was answered with %d, %v", path, response.StatusCode, err)
	}
}
