package dispatch

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
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/webhook"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	userAgent          = "navlog/1"
	maxResponseHeaders = 16 << 10
	maxResponseKept    = 4 << 10 // bytes of a response body that the log keeps
	idleConnTimeout    = 30 * time.Second
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

// result is what came of a POST.
type result struct {
	outcome  string
	status   int    // 0 without an answer
	response []byte // its first maxResponseKept bytes
	err      string // why there was no answer
	started  time.Time
	took     time.Duration
}

func (r result) accepted() bool { return r.outcome == outcomeAccepted }

// down tells a receiver that is dead or overwhelmed, which opens the breaker,
// from one that lives and refuses.
func (r result) down() bool {
	switch r.outcome {
	case outcomeAccepted, outcomeRedirect, outcomeRefused:
		return false
	}
	return true
}

// message is what a POST carries.
type message struct {
	event uuid.UUID
	kind  string
	body  []byte
}

// endpoint is where a partner is told: URL and secret of one version, never
// mixed.
type endpoint struct {
	version int64
	url     string
	secret  string
}

// poster posts to partners. It uses the transport alone: a client would follow
// redirects.
type poster struct {
	transport *http.Transport
	deadline  time.Duration
}

// newPoster makes a client for hostile receivers: every address is judged by the
// guard when it is dialled, no proxy comes between them, nothing is unpacked,
// and headers are bounded.
func newPoster(g *guard.Guard, roots *x509.CertPool, perHost int, deadline time.Duration) *poster {
	return &poster{deadline: deadline, transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            g.Dialer().DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeaders,
		MaxIdleConnsPerHost:    perHost,
		IdleConnTimeout:        idleConnTimeout,
	}}
}

// post sends m once, with a fresh timestamp and signature. The deadline holds
// for all of it, from the look-up of the name to the last byte that is read.
// ctx ends only with the process: an attempt under way is finished.
func (p *poster) post(ctx context.Context, e endpoint, m message) result {
	ctx, cancel := context.WithTimeout(ctx, p.deadline)
	defer cancel()
	started := time.Now().UTC()
	r := p.exchange(ctx, e, m, started.Unix())
	r.started, r.took = started, time.Since(started)
	return r
}

func (p *poster) exchange(ctx context.Context, e endpoint, m message, timestamp int64) result {
	// A reader that is none of those that net/http knows, so that GetBody stays
	// nil and the request cannot be sent a second time behind our back.
	body := io.NopCloser(bytes.NewReader(m.body))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, body)
	if err != nil {
		return result{outcome: outcomeNetwork, err: "the URL cannot be used"}
	}
	request.ContentLength = int64(len(m.body))
	request.Header = http.Header{
		"Content-Type":          {"application/json"},
		"User-Agent":            {userAgent},
		webhook.HeaderEventID:   {m.event.String()},
		webhook.HeaderEventType: {m.kind},
		webhook.HeaderTimestamp: {strconv.FormatInt(timestamp, 10)},
		webhook.HeaderSignature: {webhook.Sign(e.secret, timestamp, m.body)},
	}
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return failure(err)
	}
	defer response.Body.Close()
	var kept []byte
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection itself, without a deadline
		// The headers decide: a body that is cut or endless changes nothing.
		kept, _ = io.ReadAll(io.LimitReader(response.Body, maxResponseKept))
	}
	return result{outcome: outcomeOf(response.StatusCode), status: response.StatusCode, response: kept}
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

// failure describes an error in characters that PostgreSQL takes. Errors of a
// transport name host and address, never the whole URL, which may hold a token.
func failure(err error) result {
	var refusal *guard.Refusal
	var network net.Error
	switch {
	case errors.As(err, &refusal):
		return result{outcome: outcomeForbidden, err: refusal.Error()}
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		return result{outcome: outcomeTimeout, err: "no answer in time"}
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), 500)], "?")
	return result{outcome: outcomeNetwork, err: strings.ReplaceAll(text, "\x00", "?")}
}
