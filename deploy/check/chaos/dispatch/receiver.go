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
	events map[uuid.UUID]*story
	faults []error
}

// story is what the receiver knows about an event.
type story struct {
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
	r := &receiver{world: world, down: map[uint32]bool{}, events: map[uuid.UUID]*story{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{partner}", r.receive)
	r.Server, err = tlsreceiver.Serve(dir, mux)
	return r, err
}

func (r *receiver) url(partner int64) string { return fmt.Sprintf("https://%s/%d", r.Address, partner) }

func (r *receiver) expect(referral partners.Referral, stubborn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[referral.ID] = &story{referral: referral, stubborn: stubborn}
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
	s, n, err := r.take(request, body, at)
	if err != nil {
		r.mu.Lock()
		r.faults = append(r.faults, err)
		r.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	mood := fnv.New32a()
	mood.Write(body)
	number := mood.Sum32() % 100
	switch {
	case s.stubborn:
		r.refuse(s, n)
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	case r.isDown(s.referral.Partner):
		r.refuse(s, n)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case n == 0 && number < 10:
		r.refuse(s, n)
		w.WriteHeader(http.StatusInternalServerError)
		return
	case n == 0 && number < 20:
		r.refuse(s, n)
		r.mu.Lock()
		s.posts[n].hungUp = !s.posts[n].own
		r.mu.Unlock()
		panic(http.ErrAbortHandler)
	case number < 40:
		time.Sleep(time.Duration(number) * 10 * time.Millisecond)
	}
	r.mu.Lock()
	s.accepted = true
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) isDown(partner uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down[partner]
}

func (r *receiver) refuse(s *story, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.posts[n].refused = true
}

// take checks the id, bytes, signature and sequence of a POST against its event. It returns the event and the POST's
// index among the event's posts.
func (r *receiver) take(request *http.Request, body []byte, at time.Time) (s *story, n int, err error) {
	h := request.Header
	id, err := uuid.Parse(h.Get(webhook.HeaderEventID))
	if err != nil {
		return nil, 0, fmt.Errorf("event id %q: %w", h.Get(webhook.HeaderEventID), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.events[id]
	if s == nil {
		return nil, 0, fmt.Errorf("event %s was never appended", id)
	}
	n = len(s.posts)
	seconds, _ := strconv.ParseInt(h.Get(webhook.HeaderTimestamp), 10, 64)
	s.posts = append(s.posts, post{at: at, second: seconds, own: request.Close})
	number, _ := strconv.ParseInt(request.PathValue("partner"), 10, 64)
	now := time.Now()
	if err := r.world.Verify(number, h, body, now); err != nil {
		return nil, 0, fmt.Errorf("event %s: %w", id, err)
	}
	sequence, _ := strconv.ParseInt(h.Get(webhook.HeaderSequence), 10, 64)
	switch {
	case now.Sub(time.Unix(seconds, 0)) > fresh:
		return nil, 0, fmt.Errorf("event %s: the signature is of %s ago", id, now.Sub(time.Unix(seconds, 0)))
	case number != int64(s.referral.Partner):
		return nil, 0, fmt.Errorf("event %s of partner %d came to partner %d", id, s.referral.Partner, number)
	case !bytes.Equal(body, s.referral.Body):
		return nil, 0, fmt.Errorf("event %s has another body", id)
	case sequence < 1 || s.sequence > 0 && s.sequence != sequence:
		return nil, 0, fmt.Errorf("event %s has sequence %d and then %d", id, s.sequence, sequence)
	}
	s.sequence = sequence
	return s, n, nil
}

// stories returns a copy of the events so far.
func (r *receiver) stories() map[uuid.UUID]story {
	r.mu.Lock()
	defer r.mu.Unlock()
	stories := make(map[uuid.UUID]story, len(r.events))
	for id, s := range r.events {
		copied := *s
		copied.posts = slices.Clone(s.posts)
		stories[id] = copied
	}
	return stories
}

// begin drops the events of the previous seed.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.faults = map[uuid.UUID]*story{}, nil
}

// wrong returns what contradicted an event since begin.
func (r *receiver) wrong() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.faults...)
}
