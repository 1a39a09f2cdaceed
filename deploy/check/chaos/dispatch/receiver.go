package dispatch

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/partners"
	tlsreceiver "github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/schemas/webhook"
)

// fresh is the maximum age of a signature: each attempt creates its own.
const fresh = 15 * time.Second

// receiver is the HTTP server of all partners. It misbehaves: it refuses one event in ten at first, closes the
// connection of one in ten after reading the request, and delays one in five. Stubborn events are refused every time,
// and so is every event of a partner that is down.
type receiver struct {
	*tlsreceiver.Server
	world *partners.World

	mu     sync.Mutex
	down   map[uint32]bool
	events map[uuid.UUID]*history
	faults []error
}

// history is what the receiver knows about an event.
type history struct {
	referral partners.Referral
	stubborn bool // refused every time
	posts    []post
	accepted bool
	sequence int64
}

// post is a request that arrived completely.
type post struct {
	at      time.Time
	refused bool // the status was not 2xx, or there was no response
	// second is when the POST's attempt began, according to its signature.
	second int64
	// own: the connection was opened for this request and is closed after it, according to its Connection header.
	own bool
	// hungUp: there was no response, and the dispatcher may have reused the connection. Then it cannot know whether the
	// request arrived, and may send it again within the attempt. Being the connection's first request proves nothing: a
	// connection stays idle if the request that it was opened for was sent on another one.
	hungUp bool
}

func startReceiver(dir string, world *partners.World) (_ *receiver, err error) {
	r := &receiver{world: world, down: map[uint32]bool{}, events: map[uuid.UUID]*history{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{partner}", r.receive)
	r.Server, err = tlsreceiver.Serve(dir, mux)
	return r, err
}

func (r *receiver) url(partner int64) string { return fmt.Sprintf("https://%s/%d", r.Address, partner) }

func (r *receiver) expect(referral partners.Referral, stubborn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[referral.ID] = &history{referral: referral, stubborn: stubborn}
}

func (r *receiver) fell(partner uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[partner] = true
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the dispatcher died while writing: not a delivery
	}
	mood := fnv.New32a()
	mood.Write(body)
	number := mood.Sum32() % 100
	s, status, err := r.respond(request, body, at, number)
	switch {
	case err != nil:
		http.Error(w, err.Error(), status)
		return
	case status == 0:
		panic(http.ErrAbortHandler)
	case status == http.StatusNoContent:
		if number < 40 {
			time.Sleep(time.Duration(number) * 10 * time.Millisecond)
		}
		r.mu.Lock()
		s.accepted = true
		r.mu.Unlock()
	}
	w.WriteHeader(status)
}

// respond notes a POST, and returns its event and the status of the response, which depends on a number from 0 to 99; 0
// stands for no response.
func (r *receiver) respond(request *http.Request, body []byte, at time.Time, number uint32) (*history, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.take(request, body, at)
	if err != nil {
		r.faults = append(r.faults, err)
		return nil, http.StatusBadRequest, err
	}
	status, first, p := http.StatusNoContent, len(s.posts) == 1, &s.posts[len(s.posts)-1]
	switch {
	case s.stubborn:
		status = http.StatusUnprocessableEntity
	case r.down[s.referral.Partner]:
		status = http.StatusServiceUnavailable
	case first && number < 10:
		status = http.StatusInternalServerError
	case first && number < 20:
		status, p.hungUp = 0, !p.own
	}
	p.refused = status != http.StatusNoContent
	return s, status, nil
}

// take checks the id, bytes, signature and sequence of a POST against its event, which it returns. The lock must be
// held.
func (r *receiver) take(request *http.Request, body []byte, at time.Time) (*history, error) {
	now := time.Now()
	id, number, err := r.world.Event(request, body, now)
	if err != nil {
		return nil, err
	}
	s := r.events[id]
	if s == nil {
		return nil, fmt.Errorf("event %s was never appended", id)
	}
	h := request.Header
	seconds, _ := strconv.ParseInt(h.Get(webhook.HeaderTimestamp), 10, 64)
	s.posts = append(s.posts, post{at: at, second: seconds, own: request.Close})
	sequence, _ := strconv.ParseInt(h.Get(webhook.HeaderSequence), 10, 64)
	switch {
	case now.Sub(time.Unix(seconds, 0)) > fresh:
		return nil, fmt.Errorf("event %s: the signature is of %s ago", id, now.Sub(time.Unix(seconds, 0)))
	case number != int64(s.referral.Partner):
		return nil, fmt.Errorf("event %s of partner %d came to partner %d", id, s.referral.Partner, number)
	case !bytes.Equal(body, s.referral.Body):
		return nil, fmt.Errorf("event %s has another body", id)
	case sequence < 1 || s.sequence > 0 && s.sequence != sequence:
		return nil, fmt.Errorf("event %s has sequence %d and then %d", id, s.sequence, sequence)
	}
	s.sequence = sequence
	return s, nil
}

// histories returns a copy of the events so far.
func (r *receiver) histories() map[uuid.UUID]history {
	r.mu.Lock()
	defer r.mu.Unlock()
	histories := make(map[uuid.UUID]history, len(r.events))
	for id, s := range r.events {
		copied := *s
		copied.posts = slices.Clone(s.posts)
		histories[id] = copied
	}
	return histories
}

// begin drops the events of the previous seed.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.faults = map[uuid.UUID]*history{}, nil
}

// wrong returns what contradicted an event since begin.
func (r *receiver) wrong() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.faults...)
}
