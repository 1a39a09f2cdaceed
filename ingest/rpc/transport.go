package rpc

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/jx"
)

// maxAnswer bounds the memory for one response of a node, in bytes after decompression.
const maxAnswer = 64 << 20

type transport struct {
	url      string
	client   *http.Client
	ids      atomic.Uint64                  // of calls
	received func(method string, bytes int) // called for every response
	lengths  sync.Map                       // by method, of the previous response
}

func newTransport(u *url.URL, received func(method string, bytes int)) *transport {
	return &transport{
		url: u.String(), received: received,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:       http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
				// Between processes of one machine compression costs more than it saves.
				DisableCompression:  loopback(u.Hostname()),
				TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConnsPerHost: 16,
				IdleConnTimeout:     time.Minute,
			},
			// Do not follow a redirect: it would send the key in a URL to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (t *transport) close() { t.client.CloseIdleConnections() }

type httpError struct {
	Status     int
	RetryAfter time.Duration // 0 if the header is missing
	Body       string        // its first 200 bytes, on one line
	answer     error         // the *rpcError in the body; nil for none
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

// Unwrap returns the JSON-RPC error in the body: many nodes send both.
func (e *httpError) Unwrap() error { return e.answer }

// post sends a call, or a batch of them, and returns the body of the response, of at most most bytes.
func (t *transport) post(ctx context.Context, method string, question any, most int) ([]byte, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL cannot be used") // its own error would contain the URL
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	// Every call may be repeated. An empty value is not sent, but lets net/http retry if the node closed an idle
	// connection.
	request.Header["X-Idempotency-Key"] = []string{}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNonAuthoritativeInfo:
	default:
		return nil, httpErrorOf(response)
	}
	// Without a Content-Length, a response is often as long as the previous one. Growing the buffer step by step would
	// make three times the garbage.
	room := response.ContentLength
	if before, ok := t.lengths.Load(method); ok && room < 0 {
		room = int64(min(before.(int), 2*targetBytes))
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
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusProxyAuthRequired, http.StatusBadGateway:
		return e // not about the call, whatever the body contains
	}
	if all, _, err := openBatch(body, MaxBatchHeaders); err == nil && len(all) > 0 && all[0].failed() {
		answer, is := errors.AsType[*rpcError](faultOf(all[0].fault))
		if is && (e.Status != http.StatusForbidden || answer.isPlanError()) {
			e.answer = answer
		}
	}
	return e
}

// isPlanError reports whether an error with HTTP status 403 is about what the plan includes rather than about the key.
func (e *rpcError) isPlanError() bool {
	r := read(e)
	return r.kind == blocksMissing || r.blocks > 0 || r.results > 0 || archiveText.MatchString(e.text()) || lacksState(e)
}

// retryAfter parses the header, which holds seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// readAnswer reads a body of at most most bytes. room is its expected size.
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
		return nil, fmt.Errorf("read the response, after %d bytes: %w", body.Len(), err)
	}
	return decompressed(response.Header.Get("Content-Encoding"), body.Bytes(), most)
}

// decompressed decompresses a body that is compressed although the request did not accept that, with or without a
// header that declares it, and removes a byte order mark.
func decompressed(encoding string, body []byte, most int) ([]byte, error) {
	var packed io.Reader
	var err error
	kind := jx.Raw(body).Type()
	switch encoding = strings.ToLower(strings.TrimSpace(encoding)); {
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}): // JSON cannot begin like this
		packed, err = gzip.NewReader(bytes.NewReader(body))
	case encoding == "deflate":
		packed, err = zlib.NewReader(bytes.NewReader(body))
	case encoding != "" && encoding != "identity" && encoding != "gzip" && kind != jx.Object && kind != jx.Array:
		return nil, fmt.Errorf("%w: its Content-Encoding is %.40q, which was not requested", errNotJSON, encoding)
	}
	if err == nil && packed != nil {
		body, err = io.ReadAll(io.LimitReader(packed, int64(most)+1))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w, after %d bytes", errTruncated, len(body))
	case err != nil:
		return nil, fmt.Errorf("%w: it cannot be decompressed: %w", errNotJSON, err)
	case len(body) > most:
		return nil, tooLong(most)
	}
	return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), nil
}

func tooLong(most int) error {
	return fmt.Errorf("%w: it has more than %d KiB", errAnswerTooLong, most>>10)
}
