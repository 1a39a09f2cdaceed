package lane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/webhook"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	userAgent          = "navlog/1"
	maxResponseHeaders = 16 << 10
	MaxResponseKept    = 4 << 10 // bytes of a response body that the log keeps
	idleConnTimeout    = 30 * time.Second
	// bodyPatience is how long the body of a response is waited for. The status is known by then, so a receiver that
	// keeps its response open delays nothing but this, and not a slot until the deadline.
	bodyPatience = time.Second
	tlsSessions  = 4 // hosts whose TLS session is kept, to go on with: of a partner hardly two
)

// Outcomes of a POST.
const (
	outcomeAccepted  = "accepted"  // 2xx
	outcomeRedirect  = "redirect"  // 3xx, not followed
	outcomeRefused   = "refused"   // 4xx but 429
	outcomeThrottled = "throttled" // 429
	outcomeError     = "error"     // 5xx, and anything below 200
	outcomeTimeout   = "timeout"   // no answer within the deadline
	outcomeForbidden = "forbidden" // the guard refused the address
	outcomeNetwork   = "network"   // anything else without an answer
)

var outcomes = []string{
	outcomeAccepted, outcomeRedirect, outcomeRefused, outcomeThrottled, outcomeError, outcomeTimeout, outcomeForbidden, outcomeNetwork,
}

// Result is what came of a POST.
type Result struct {
	Outcome  string
	Status   int    // 0 without an answer
	Response []byte // its first MaxResponseKept bytes
	Err      string // why there was no answer, as its partner may read it
	Cause    error  // the whole of it, for the operator's log alone
	Started  time.Time
	Took     time.Duration
	Phases   Phases
}

func (r Result) accepted() bool { return r.Outcome == outcomeAccepted }

// down tells a receiver that is dead or overwhelmed, which opens the breaker,
// from one that lives and refuses.
func (r Result) down() bool {
	switch r.Outcome {
	case outcomeAccepted, outcomeRedirect, outcomeRefused:
		return false
	}
	return true
}

// message is what a POST carries.
type message struct {
	event    uuid.UUID
	kind     string
	sequence int64 // of the partner's stream; 0 for a test event, which is not in it
	body     []byte
}

// Endpoint is where a partner is told: URL and secrets of one version, never
// mixed.
type Endpoint struct {
	Version int64
	URL     string
	Secret  string
	Next    string // takes over from secret soon; "" while none is on its way
	Held    bool   // an operator parked the partner
}

// poster posts to one partner, on connections of its own: what is done to one partner's is
// not felt by another, who may share the host. It uses the transport alone: a client
// would follow redirects.
type poster struct {
	transport *http.Transport
	unshared  *http.Transport // opens a connection for each request, and closes it
	deadline  time.Duration
	patience  time.Duration // bodyPatience, but in tests
}

// newPoster makes a client for hostile receivers: every address is judged by the
// guard when it is dialled, no proxy comes between them, nothing is unpacked,
// and headers are bounded.
//
// It speaks HTTP/1.1 only. Partners may share a host, a gateway for instance:
// over HTTP/2 they would share one connection, with its limit of streams and its
// flow control, and one of them could hold up all others; and net/http repeats
// requests that an HTTP/2 server gave back. The number of connections in use is
// bounded by slots, that of idle ones here, by idle.
//
// net/http goes on opening a connection when the request that wanted it has
// ended, for another request may use it. A receiver that lets every connection
// hang would gather one for each attempt; so opening ends at the attempt's
// deadline, and a TLS handshake one deadline after it began at the latest.
func newPoster(g *guard.Guard, roots *x509.CertPool, idle int, deadline time.Duration) *poster {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := g.Dialer()
	transport := &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithDeadline(ctx, ctx.Value(deadlineKey{}).(time.Time))
			defer cancel()
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: deadline,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots,
			// A receiver that never answers costs a connection for each attempt.
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeaders,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        idleConnTimeout,
	}
	// A clone judges every address too, for it dials with the same function.
	unshared := transport.Clone()
	unshared.DisableKeepAlives = true
	return &poster{transport: transport, unshared: unshared, deadline: deadline, patience: bodyPatience}
}

// deadlineKey is under which a POST's context holds its deadline as a value, the
// only thing of it that net/http leaves to those who dial.
type deadlineKey struct{}

// post makes one attempt to send m, with a fresh timestamp and signature. The deadline
// holds for all of it, from the look-up of the name to the last byte that is read.
// ctx ends only with the process: an attempt under way is finished.
//
// A receiver closes a connection that was idle for a while, and does not see the request
// that is on its way by then. Such a request says nothing about the receiver, so post sends
// it once more, on a new connection: same id, same bytes. The receiver may get the event twice,
// which at-least-once delivery allows.
func (p *poster) post(ctx context.Context, e Endpoint, m message) Result {
	started := time.Now()
	ends := started.Add(p.deadline)
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, deadlineKey{}, ends), ends)
	defer cancel()
	var watch stopwatch
	r := p.exchange(watch.watch(ctx), &watch, e, m, started.Unix())
	r.Started, r.Took, r.Phases = started.UTC(), time.Since(started), watch.read()
	return r
}

func (p *poster) exchange(ctx context.Context, watch *stopwatch, e Endpoint, m message, timestamp int64) Result {
	// Cancelling ends the wait for a body, and closes its connection.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := p.send(ctx, p.transport, e, m, timestamp)
	if err != nil {
		// The other idle connections lead to the same receiver, which may have closed them too.
		p.transport.CloseIdleConnections()
		if watch.diedIdle() && ctx.Err() == nil {
			response, err = p.send(ctx, p.unshared, e, m, timestamp)
		}
	}
	if err != nil {
		return failure(err)
	}
	defer response.Body.Close()
	var kept []byte
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection itself, without a deadline
		// The headers decide: a body that is slow, cut or endless changes nothing.
		defer time.AfterFunc(p.patience, cancel).Stop()
		kept, _ = io.ReadAll(io.LimitReader(response.Body, MaxResponseKept))
	}
	return Result{Outcome: outcomeOf(response.StatusCode), Status: response.StatusCode, Response: kept}
}

// errURL says that no request can be made of an endpoint's URL.
var errURL = errors.New("the URL cannot be used")

// send sends one request and returns when the headers of its response are there.
func (p *poster) send(
	ctx context.Context, transport *http.Transport, e Endpoint, m message, timestamp int64,
) (*http.Response, error) {
	// A reader that is none of those that net/http knows, so that GetBody stays
	// nil and the request cannot be sent a second time behind our back.
	body := io.NopCloser(bytes.NewReader(m.body))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, body)
	if err != nil {
		return nil, errURL
	}
	request.ContentLength = int64(len(m.body))
	request.Header = headers(e, m, timestamp)
	return transport.RoundTrip(request)
}

// headers are those of navlog, with the partner's sequence and the signature
// with the secret of a rotation under way, and beside them the set of Standard
// Webhooks.
func headers(e Endpoint, m message, timestamp int64) http.Header {
	id, seconds := m.event.String(), strconv.FormatInt(timestamp, 10)
	h := http.Header{
		"Content-Type":          {"application/json"},
		"User-Agent":            {userAgent},
		webhook.HeaderEventID:   {id},
		webhook.HeaderEventType: {m.kind},
		webhook.HeaderTimestamp: {seconds},
		webhook.HeaderSignature: {webhook.Sign(e.Secret, timestamp, m.body)},
	}
	if m.sequence > 0 {
		h[webhook.HeaderSequence] = []string{strconv.FormatInt(m.sequence, 10)}
	}
	secrets := []string{e.Secret}
	if e.Next != "" {
		h[webhook.HeaderSignatureNext] = []string{webhook.Sign(e.Next, timestamp, m.body)}
		secrets = append(secrets, e.Next)
	}
	if signature, err := webhook.SignStandard(secrets, id, timestamp, m.body); err == nil {
		h[webhook.HeaderStandardID], h[webhook.HeaderStandardTimestamp] = []string{id}, []string{seconds}
		h[webhook.HeaderStandardSignature] = []string{signature}
	}
	return h
}

func outcomeOf(status int) string {
	switch {
	case status >= 200 && status <= 299:
		return outcomeAccepted
	case status >= 300 && status <= 399:
		return outcomeRedirect
	case status == http.StatusTooManyRequests:
		return outcomeThrottled
	case status >= 400 && status <= 499:
		return outcomeRefused
	}
	return outcomeError
}
