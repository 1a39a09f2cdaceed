package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// maxAnswer bounds the memory that one answer of a node takes, in bytes after
// decompression.
const maxAnswer = 64 << 20

// transport posts JSON to one URL.
type transport struct {
	url      string
	client   *http.Client
	ids      atomic.Uint64                  // of questions
	received func(method string, bytes int) // told of every answer
	lengths  sync.Map                       // by method, of the answer before
}

func newTransport(u *url.URL, received func(method string, bytes int)) *transport {
	return &transport{
		url: u.String(), received: received,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:       http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
				// Between processes of one machine compressing costs more than it spares.
				DisableCompression:  loopback(u.Hostname()),
				TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConnsPerHost: 16,
				IdleConnTimeout:     time.Minute,
			},
			// A redirect would carry the key of a URL to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (t *transport) close() { t.client.CloseIdleConnections() }

// httpError is an HTTP answer with a status other than 200.
type httpError struct {
	Status     int
	RetryAfter time.Duration // 0 where the header is missing
	Body       string        // its first 200 bytes, on one line
	answer     *rpcError     // the node's, where the body is a JSON-RPC error; else nil
}

func (e *httpError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	switch {
	case e.Status >= 300 && e.Status < 400:
		return s + ": redirects are not followed; give the URL that it leads to"
	case e.answer != nil:
		return s + ": " + e.answer.Error()
	case e.Body != "":
		return s + ": " + e.Body
	}
	return s
}

// Unwrap gives the JSON-RPC error in the body: many nodes send both.
func (e *httpError) Unwrap() error {
	if e.answer == nil {
		return nil
	}
	return e.answer
}

// post sends a question, or a batch of them, and gives the body of the answer, of at
// most so many bytes.
func (t *transport) post(ctx context.Context, method string, question any, most int) ([]byte, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("encode the question: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL cannot be used") // the error would repeat it
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	// Every question may be asked twice. An empty value is not sent, but lets
	// net/http try again when the node closed a connection that lay idle.
	request.Header["X-Idempotency-Key"] = []string{}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, httpErrorOf(response)
	}
	// A node that names no length often answers as much as before. A buffer that grows to
	// there makes three times the garbage.
	room := response.ContentLength
	if before, ok := t.lengths.Load(method); ok && room < 0 {
		room = int64(min(before.(int), 2*wantedAnswer))
	}
	answer, err := readAnswer(response, most, room)
	t.lengths.Store(method, len(answer))
	t.received(method, len(answer))
	return answer, err
}

func httpErrorOf(response *http.Response) error {
	e := &httpError{Status: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now())}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	e.Body = excerpt(body)
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusProxyAuthRequired, http.StatusBadGateway:
		return e // not about the question, whatever the body looks like
	}
	if all, err := openBatch(body); err == nil && len(all) > 0 && all[0].fault != nil {
		_ = errors.As(faultOf(all[0].fault), &e.answer)
	}
	return e
}

// retryAfter reads the header, which holds seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// readAnswer reads a body of at most so many bytes, with room for those that it
// probably has.
func readAnswer(response *http.Response, most int, room int64) ([]byte, error) {
	if response.ContentLength > int64(most) {
		return nil, tooLong(most)
	}
	var body bytes.Buffer
	if room > 0 {
		body.Grow(int(room) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case body.Len() > most:
		return nil, tooLong(most)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w, after %d bytes", errTruncated, body.Len())
	case err != nil:
		return nil, fmt.Errorf("read the answer, after %d bytes: %w", body.Len(), err)
	}
	return body.Bytes(), nil
}

func tooLong(most int) error {
	return fmt.Errorf("%w: it has more than %d KiB", errAnswerTooLong, most>>10)
}
