package rpc

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// A node that accepts a subscription and then no longer responds does not delay the end of ingest: the connection is
// closed without a further call, which would wait for its response.
func TestEndOfASubscription(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	last := make(chan error, 1)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			last <- err
			return
		}
		defer conn.Close()
		accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(accept[:]))
		frame := make([]byte, 1000)
		if _, err := conn.Read(frame); err != nil { // the call of eth_subscribe
			last <- err
			return
		}
		response := `{"jsonrpc":"2.0","id":1,"result":"0x1"}`
		_, _ = fmt.Fprintf(conn, "\x81%c%s", len(response), response)
		_, err = conn.Read(frame)
		if err == nil && frame[0] != 0x88 { // a close frame
			err = errors.New("the node is called again")
		}
		last <- err
	}))
	t.Cleanup(node.Close)
	p := noPool(wallClock)
	p.log = slog.New(slog.DiscardHandler)
	n := p.newNode(Endpoint{URL: node.URL, WS: strings.Replace(node.URL, "http", "ws", 1)}, "silent")
	ended := make(chan struct{})
	go func() {
		p.listen(ctx, n)
		close(ended)
	}()
	wait.Until(t, func() error {
		if !n.health.snapshot().subscribed {
			return errors.New("it has not subscribed")
		}
		return nil
	})
	cancel()
	for range 2 {
		select {
		case err := <-last:
			if err != nil {
				t.Error(err)
			}
		case <-ended:
			ended = nil
		case <-time.After(patience):
			t.Fatal("the subscription does not end")
		}
	}
}

// A socket that stays open and announces nothing is detected by the blocks that polls see.
func TestSilentSocket(t *testing.T) {
	now := time.Unix(1000, 0)
	var m missed
	at := func(number uint64) *seenBlock { return &seenBlock{number: number} }
	check := func(silent bool, seen *seenBlock, after time.Duration) {
		t.Helper()
		now = now.Add(after)
		if err := m.check(seen, now); (err != nil) != silent {
			t.Errorf("%+v with the head at %+v returns %v", m, seen, err)
		}
	}
	check(false, nil, time.Hour)                // no poll yet
	check(false, at(7), time.Hour)              // the head at the start
	check(false, at(7), time.Hour)              // no new block
	check(false, at(8), time.Hour)              // polled just before it is announced
	m.announced(8)                              // the announcement
	check(false, at(8), time.Hour)              //
	check(false, at(9), 0)                      // a block that is not announced,
	check(false, at(12), subscriptionTimeout-1) // and more, for a while
	check(true, at(12), 1)                      // long enough
	m.announced(12)                             //
	check(false, at(11), 2*subscriptionTimeout) // after a reorganisation the head may be lower
	check(false, at(13), time.Second)           //
	check(false, at(12), 2*subscriptionTimeout) //
	check(false, at(13), time.Second)           //
	check(false, at(13), subscriptionTimeout-2) //
	check(true, at(14), 3*time.Second)          //
}

// After an announcement the endpoint in use is polled eagerly, until it has the block too or some time has passed.
func TestFastPollsAfterAnnouncement(t *testing.T) {
	p := NewPool(5, Endpoints("http://a.invalid"), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
	rests := func(want time.Duration) {
		t.Helper()
		if got := p.pollPause(time.Minute); got != want {
			t.Errorf("the pause is %s, want %s", got, want)
		}
	}
	f := newFakeTime()
	p.clock = f.clock()
	rests(time.Minute)
	p.announce(p.all[0], seenBlock{8, f.now()})
	rests(fastPollEvery)
	p.seenHead.Store(&seenBlock{7, f.now()})
	rests(fastPollEvery)
	f.pass(fastPollFor)
	rests(time.Minute)
	p.announce(p.all[0], seenBlock{9, f.now()})
	p.seenHead.Store(&seenBlock{9, f.now()})
	rests(time.Minute)
	if err := p.WaitForHead(t.Context(), time.Hour); err != nil { // the announcement came before WaitForHead
		t.Error(err)
	}
	leaving, cancel := contextDone(t)
	defer cancel()
	if err := p.WaitForHead(leaving, time.Hour); err == nil {
		t.Error("a caller that cancels still waits")
	}
}

// Announcements of old blocks, or of one that never comes, cost few polls, however many there are.
func TestAnnouncementsInVain(t *testing.T) {
	always := func(number uint64) func(int) uint64 { return func(int) uint64 { return number } }
	const periods = int(time.Minute / fastPollAgain) // of fast polls, without a new head
	for name, c := range map[string]struct {
		number, head func(i int) uint64 // of the announcement after i milliseconds, and at the endpoint in use then
		most         int                // polls within a minute
	}{
		"an old block":             {always(7), always(100), 0},
		"the head":                 {always(100), always(100), 0},
		"a block that never comes": {always(1 << 62), always(100), 9 * periods},
		"higher ones that never come": {func(i int) uint64 { return 1<<62 + uint64(i) }, always(100),
			periods * int(fastPollFor/fastPollEvery+1)},
		"with a block every 12 s": {always(1 << 62), func(i int) uint64 { return 100 + uint64(i)/12_000 }, 9 * 2 * periods},
		"with another head at each poll": {always(1 << 62), func(i int) uint64 { return 100 + uint64(i)%2 },
			int(time.Minute/fastPollEvery + 1)},
	} {
		p := NewPool(5, Endpoints("http://a.invalid"), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
		f := newFakeTime()
		p.clock = f.clock()
		polls := 0
		poll := func(i int) {
			polls++
			if err := p.sawHead(t.Context(), p.all[0], &Header{Number: c.head(i)}); err != nil {
				t.Fatal(err)
			}
		}
		poll(0)
		polls = 0
		next, began := f.now().Add(time.Hour), f.now()
		for i := range int(time.Minute / time.Millisecond) {
			p.announce(p.all[0], seenBlock{c.number(i), f.now()})
			woken := len(p.wake) > 0
			if woken {
				if err := p.WaitForHead(t.Context(), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			if woken || !f.now().Before(next) {
				p.lastWait = f.now()
				poll(i)
				next = f.now().Add(p.pollPause(time.Hour))
			}
			if f.pass(time.Millisecond); f.now().Sub(began) >= time.Minute {
				break
			}
		}
		if polls > c.most || c.most > 0 && polls == 0 {
			t.Errorf("%s: %d polls in a minute, want at most %d", name, polls, c.most)
		}
	}
}

// The endpoint in use is always one block behind the one that announces: it is polled a few times for each block,
// however fast they come.
func TestFastPollPausesGrow(t *testing.T) {
	for _, every := range []time.Duration{250 * time.Millisecond, time.Second, 12 * time.Second} {
		p := NewPool(5, Endpoints("http://a.invalid"), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
		f := newFakeTime()
		p.clock = f.clock()
		const blocks = 20
		looks := 0
		for number := range uint64(blocks) {
			p.seenHead.Store(&seenBlock{number, f.now()})
			p.announce(p.all[0], seenBlock{number + 1, f.now()})
			for next := f.now().Add(every); f.now().Before(next); looks++ {
				f.pass(p.pollPause(time.Minute))
			}
		}
		if looks > 9*blocks {
			t.Errorf("with a block every %s there are %d polls for %d blocks", every, looks, blocks)
		}
	}
}

// The number of an announced block is the member of exactly this name.
func TestAnnouncedNumber(t *testing.T) {
	for _, raw := range []string{`{"number":"0x5","Number":"0x6"}`, `{"NUMBER":"0x6","hash":"0x1","number":"0x5"}`} {
		var a announcement
		if err := json.Unmarshal([]byte(raw), &a); err != nil || a.number != 5 {
			t.Errorf("%s announces block %d, %v", raw, a.number, err)
		}
	}
	for raw, says := range map[string]string{`{"Number":"0x6"}`: "it is missing and must be a number",
		`{"number":null}`: "it is null and not a number", `{"number":"6"}`: "has no 0x", `[]`: "and not a block"} {
		var a announcement
		if err := json.Unmarshal([]byte(raw), &a); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s announces block %d, and the error is %v", raw, a.number, err)
		}
	}
}
