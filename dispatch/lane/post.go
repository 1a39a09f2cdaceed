package lane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	userAgent          = "navlog/1"
	maxResponseHeaders = 16 << 10
	MaxResponseKept    = 4 << 10 // bytes of a response body that the attempt log keeps
	idleConnTimeout    = 30 * time.Second
	// connectionAge is how long connections are used. Their receiver's name may lead to another address meanwhile, and a
	// partner with steady traffic has no idle ones.
	connectionAge = time.Minute
	// bodyPatience is how long to wait for the body of a response. The status is known by then, so a
	// receiver that keeps its response open delays its slot by this much, not until the deadline.
	bodyPatience = time.Second
	tlsSessions  = 4 // hosts whose TLS sessions are kept for resumption; a partner rarely has two
)

// Outcomes of a POST.
const (
	outcomeAccepted  = "accepted"  // 2xx
	outcomeRedirect  = "redirect"  // 3xx, not followed
	outcomeRefused   = "refused"   // 4xx except 429
	outcomeThrottled = "throttled" // 429
	outcomeError     = "error"     // 5xx, and anything below 200
	outcomeTimeout   = "timeout"   // no response within the deadline
	outcomeForbidden = "forbidden" // the guard refused the address
	outcomeNetwork   = "network"   // any other error without a response
)

var outcomes = []string{
	outcomeAccepted, outcomeRedirect, outcomeRefused, outcomeThrottled, outcomeError, outcomeTimeout, outcomeForbidden,
	outcomeNetwork,
}

// Result is the result of a POST.
type Result struct {
	Outcome  string
	Status   int    // 0 without a response
	Response []byte // its first MaxResponseKept bytes
	Err      string // why there was no response, in words for the partner
	Cause    error  // the full error, only for the operator's log
	Started  time.Time
	Took     time.Duration
	Phases   Phases
}

func (r Result) accepted() bool { return r.Outcome == outcomeAccepted }

// opensBreaker reports whether the receiver is dead or overwhelmed, which opens the breaker,
// rather than alive and rejecting.
func (r Result) opensBreaker() bool {
	switch r.Outcome {
	case outcomeAccepted, outcomeRedirect, outcomeRefused:
		return false
	}
	return true
}

// Endpoint is where to send a partner's events: URL, secrets and certificates of one version, never
// mixed.
type Endpoint struct {
	Version int64
	URL     string
	Secret  string
	Next    string // replaces Secret soon; "" unless a rotation is under way
	Held    bool   // an operator parked the partner
	// Certificates belong to URL; nil: there are none.
	Certificates *certs.Pinned
}

// poster posts to one partner on its own connections, so that one partner's connections do
// not affect another's on the same host. It uses the bare transport, because a client would
// follow redirects.
type poster struct {
	transport *http.Transport
	unshared  *http.Transport     // opens a connection for each request, and closes it
	client    []*x509.Certificate // the client certificate with its chain; empty: none
	made      time.Time
	deadline  time.Duration
	patience  time.Duration // bodyPatience, except in tests
}

// newPoster returns a poster that is safe with hostile receivers: the guard checks every address that is dialled, no
// proxy is used, nothing is decompressed, and headers are bounded.
//
// It speaks only HTTP/1.1. Partners may share a host, for instance a gateway: over HTTP/2 they would share one
// connection, with its stream limit and flow control, so that one partner could hold up all others; and net/http
// repeats requests that an HTTP/2 server did not process. Slots bound the number of connections in use, idle that of
// idle ones.
//
// net/http continues to open a connection after its request has ended, because another request may use it. A receiver
// that lets every connection hang would collect one for each attempt; so dialling ends at the attempt's deadline, and a
// TLS handshake at most one deadline after it began.
//
// The certificates of the URL determine which authorities its connections trust and how they authenticate. A poster
// has one set of them for life: its connections and TLS sessions never serve another set.
func newPoster(g *guard.Guard, roots *x509.CertPool, pinned *certs.Pinned, idle int, deadline time.Duration) *poster {
	if pinned == nil {
		pinned = new(certs.Pinned)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := g.Dialer()
	transport := &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithDeadline(ctx, ctx.Value(stopwatchKey{}).(*stopwatch).started.Add(deadline))
			defer cancel()
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: deadline,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: pinned.Pool(roots),
			GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				noteRequest(request.Context())
				if pinned.Client == nil {
					return new(tls.Certificate), nil
				}
				// It was set for this URL, so it is sent even if the receiver's list of authorities lacks its own.
				return pinned.Client, nil
			},
			// Without resumption, a receiver that never responds costs a full handshake for each attempt.
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeaders,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        idleConnTimeout,
	}
	// The clone dials with the same function, so the guard checks its addresses too.
	unshared := transport.Clone()
	unshared.DisableKeepAlives = true
	return &poster{
		transport: transport, unshared: unshared, client: pinned.ClientChain(), made: time.Now(), deadline: deadline,
		patience: bodyPatience,
	}
}

// post makes one attempt to send d, with a fresh timestamp and signature. The deadline covers everything from the name
// lookup to the last byte read. ctx ends only with the process: an attempt in flight is finished.
//
// A receiver that closes an idle connection does not see a request that is on its way at that moment. Such a failure is
// no evidence about the receiver, so post sends the request again, on a new connection, with the same id and the same
// bytes. The receiver may get the event twice, which at-least-once delivery allows.
func (p *poster) post(ctx context.Context, e Endpoint, d db.DueDeliveriesRow) Result {
	var watch stopwatch
	ctx = watch.watch(ctx)
	started := watch.started
	ctx, cancel := context.WithDeadline(ctx, started.Add(p.deadline))
	defer cancel()
	r := p.exchange(ctx, &watch, e, d, started.Unix())
	r.Started, r.Took, r.Phases = started.UTC(), time.Since(started), watch.read()
	return r
}

func (p *poster) exchange(
	ctx context.Context, watch *stopwatch, e Endpoint, d db.DueDeliveriesRow, timestamp int64,
) Result {
	// Cancelling ends the wait for the body and closes the connection.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := p.send(ctx, p.transport, e, d, timestamp)
	if err != nil {
		// The other idle connections lead to the same receiver, which may have closed them too.
		p.transport.CloseIdleConnections()
		if watch.closedWhileIdle() && ctx.Err() == nil {
			response, err = p.send(ctx, p.unshared, e, d, timestamp)
		}
	}
	if err != nil {
		return failure(err, watch.clientAuth(p.client))
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusContinue { // net/http accepts 000 to 099, and 0 stands for no response
		return failure(fmt.Errorf("malformed HTTP status code %q", response.Status), clientAuth{})
	}
	var kept []byte
	// After switching protocols the body would be the connection itself, without a deadline.
	if response.StatusCode != http.StatusSwitchingProtocols {
		// The status decides the outcome: a slow, truncated or endless body does not change it.
		defer time.AfterFunc(p.patience, cancel).Stop()
		kept, _ = io.ReadAll(io.LimitReader(response.Body, MaxResponseKept))
	}
	return Result{Outcome: outcomeOf(response.StatusCode), Status: response.StatusCode, Response: kept}
}

// errURL means that an endpoint's URL does not make a valid request.
var errURL = errors.New("the URL cannot be used")

// send sends one request and returns as soon as it has the headers of the response.
func (p *poster) send(
	ctx context.Context, transport *http.Transport, e Endpoint, d db.DueDeliveriesRow, timestamp int64,
) (*http.Response, error) {
	// net/http does not know this type of reader, so GetBody stays nil and net/http cannot
	// repeat the request by itself.
	body := io.NopCloser(bytes.NewReader(d.Body))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, body)
	if err != nil {
		return nil, errURL
	}
	request.ContentLength = int64(len(d.Body))
	request.Header = headers(e, d, timestamp)
	return transport.RoundTrip(request)
}

// headers returns navlog's headers, with the partner's sequence and, during a rotation, the
// signature with the next secret, and in addition the headers of Standard Webhooks.
func headers(e Endpoint, d db.DueDeliveriesRow, timestamp int64) http.Header {
	id, seconds := d.EventID.String(), strconv.FormatInt(timestamp, 10)
	h := http.Header{
		"Content-Type":          {"application/json"},
		"User-Agent":            {userAgent},
		webhook.HeaderEventID:   {id},
		webhook.HeaderEventType: {d.Type},
		webhook.HeaderTimestamp: {seconds},
		webhook.HeaderSignature: {webhook.Sign(e.Secret, timestamp, d.Body)},
	}
	if d.Sequence != nil { // a test event has none
		h[webhook.HeaderSequence] = []string{strconv.FormatInt(*d.Sequence, 10)}
	}
	secrets := []string{e.Secret}
	if e.Next != "" {
		h[webhook.HeaderSignatureNext] = []string{webhook.Sign(e.Next, timestamp, d.Body)}
		secrets = append(secrets, e.Next)
	}
	if signature, err := webhook.SignStandard(secrets, id, timestamp, d.Body); err == nil {
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
