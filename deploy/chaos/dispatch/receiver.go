package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	authority "github.com/navlog/navlog/deploy/receiver"
	"github.com/navlog/navlog/deploy/referrals"
	"github.com/navlog/navlog/schemas/webhook"
)

// fresh is how old a signature may be: each attempt makes its own.
const fresh = 15 * time.Second

// receiver is the server of all partners. It is not well: one event in ten is
// refused at first, one in ten loses its connection after it was read, and one
// in five has to wait.
type receiver struct {
	server  *http.Server
	address string
	caFile  string

	mu      sync.Mutex
	secrets map[int64]string
	events  map[uuid.UUID]*story
	faults  []error
}

// story is what the receiver knows of an event.
type story struct {
	referral referrals.Referral
	posts    []post
	accepted bool
	sequence int64
}

// post is a request that arrived whole.
type post struct {
	at      time.Time
	refused bool // answered with something else than 2xx, or not at all
}

func startReceiver(dir string) (*receiver, error) {
	certificate, caFile, err := authority.Certificate(dir)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{address: listener.Addr().String(), caFile: caFile, secrets: map[int64]string{}, events: map[uuid.UUID]*story{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{partner}", r.receive)
	r.server = &http.Server{
		Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go r.server.ServeTLS(listener, "", "")
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) url(partner int64) string { return fmt.Sprintf("https://%s/%d", r.address, partner) }

func (r *receiver) know(partner int64, secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[partner] = secret
}

func (r *receiver) expect(referral referrals.Referral) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[referral.ID] = &story{referral: referral}
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the dispatcher died while it was writing: not a delivery
	}
	s, n, err := r.take(request.PathValue("partner"), request.Header, body, at)
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
	case n == 0 && number < 10:
		r.refuse(s, n)
		w.WriteHeader(http.StatusInternalServerError)
		return
	case n == 0 && number < 20:
		r.refuse(s, n)
		panic(http.ErrAbortHandler)
	case number < 40:
		time.Sleep(time.Duration(number) * 10 * time.Millisecond)
	}
	r.mu.Lock()
	s.accepted = true
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) refuse(s *story, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.posts[n].refused = true
}

// take checks a POST against the event that it is of: id, bytes, signature and
// sequence. It gives the event and the POST's place among its posts.
func (r *receiver) take(partner string, h http.Header, body []byte, at time.Time) (s *story, n int, err error) {
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
	s.posts = append(s.posts, post{at: at})
	number, _ := strconv.ParseInt(partner, 10, 64)
	now := time.Now()
	if err := webhook.Verify(r.secrets[number], h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), body, now); err != nil {
		return nil, 0, fmt.Errorf("event %s: %w", id, err)
	}
	seconds, _ := strconv.ParseInt(h.Get(webhook.HeaderTimestamp), 10, 64)
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

// missing counts the events that are not acknowledged.
func (r *receiver) missing() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missingLocked()
}

// judge counts what came more often than its answers explain, and checks that
// each partner's sequence has no gap.
func (r *receiver) judge() (extra int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sequences := map[uint32]map[int64]bool{}
	for _, s := range r.events {
		unexplained := -1 // one has to come
		for _, p := range s.posts {
			if !p.refused {
				unexplained++
			}
		}
		extra += max(0, unexplained)
		if !s.accepted {
			continue
		}
		if sequences[s.referral.Partner] == nil {
			sequences[s.referral.Partner] = map[int64]bool{}
		}
		sequences[s.referral.Partner][s.sequence] = true
	}
	faults := r.faults
	if r.missingLocked() == 0 {
		for partner, seen := range sequences {
			events := 0
			for _, s := range r.events {
				if s.referral.Partner == partner {
					events++
				}
			}
			for n := int64(1); n <= int64(events); n++ {
				if !seen[n] {
					faults = append(faults, fmt.Errorf("partner %d: sequence %d of %d is missing", partner, n, events))
				}
			}
		}
	}
	r.faults = nil
	return extra, errors.Join(faults...)
}

func (r *receiver) missingLocked() (n int) {
	for _, s := range r.events {
		if !s.accepted {
			n++
		}
	}
	return n
}

// underWay counts what the ledger says was under way.
func (r *receiver) underWay(l *ledger) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return l.count(r.events)
}

// begin forgets the events of the seed before.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.faults = map[uuid.UUID]*story{}, nil
}
