package main

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

	tlsreceiver "github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/deploy/testkit/referrals"
	"github.com/navlog/navlog/schemas/webhook"
)

// fresh is how old a signature may be: each attempt makes its own.
const fresh = 15 * time.Second

// receiver is the server of all partners. It is not well: one event in ten is
// refused at first, one in ten loses its connection after it was read, and one
// in five has to wait. Stubborn events are refused for ever, and so is everything
// of a partner that is down.
type receiver struct {
	*tlsreceiver.Server
	world *referrals.World

	mu     sync.Mutex
	down   map[uint32]bool
	events map[uuid.UUID]*story
	faults []error
}

// story is what the receiver knows of an event.
type story struct {
	referral referrals.Referral
	stubborn bool // it is to be refused for ever
	posts    []post
	accepted bool
	sequence int64
}

// post is a request that arrived whole.
type post struct {
	at      time.Time
	refused bool // answered with something else than 2xx, or not at all
	// second is when the attempt began that the POST is of, as its signature says.
	second int64
	// own: its connection was opened for it and is closed after it, as its header Connection says.
	own bool
	// hungUp: it was not answered, on a connection that the dispatcher may have kept, so that the dispatcher cannot know
	// whether it arrived and may send it again within the attempt. That it is the connection's first request says nothing:
	// a connection is kept unused when the request that it was opened for went out on another one.
	hungUp bool
}

func startReceiver(dir string, world *referrals.World) (_ *receiver, err error) {
	r := &receiver{world: world, down: map[uint32]bool{}, events: map[uuid.UUID]*story{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{partner}", r.receive)
	r.Server, err = tlsreceiver.Serve(dir, mux)
	return r, err
}

func (r *receiver) url(partner int64) string { return fmt.Sprintf("https://%s/%d", r.Address, partner) }

func (r *receiver) expect(referral referrals.Referral, stubborn bool) {
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
		return // the dispatcher died while it was writing: not a delivery
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

// take checks a POST against the event that it is of: id, bytes, signature and
// sequence. It gives the event and the POST's place among its posts.
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

// stories are the events so far, each as it was when it was asked for.
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

// begin forgets the events of the seed before.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.faults = map[uuid.UUID]*story{}, nil
}

// wrong is what contradicted an event, since begin.
func (r *receiver) wrong() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.faults...)
}
