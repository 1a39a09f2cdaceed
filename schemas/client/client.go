// Package client is a small client of the HTTP API: requests, and the types of the responses that navlog's own commands
// read. schemas/openapi describes the whole API.
//
//	api, err := client.New("https://navlog.example", key, nil)
//	users, err := client.Read[[]client.User](api.Get(ctx, "/api/v1/users", url.Values{"pageSize": {"100"}}))
//	block := users.Header.Get("X-Indexed-Block") // asOfBlock of the next pages, if all must show the same state
//
// Amounts are decimal strings in native units, as in the API; math/big reads them. A client has no
// limits: give a context with a deadline, or an [http.Client] with a timeout.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Doer sends requests, as [http.Client] does. The API never redirects: a client that follows
// redirects would take the key to another address.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client sends requests to one API.
type Client struct {
	base url.URL
	key  string
	http Doer
}

// New returns a client for the API at an http or https address. key is a partner's API key, sent with every request;
// empty for none. If doer is nil, the client uses an [http.Client] that follows no redirects.
func New(address, key string, doer Doer) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of an API, such as https://navlog.example", address)
	}
	if doer == nil {
		doer = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{base: *base, key: key, http: doer}, nil
}

// Get requests a path of the API, which begins with a slash, with query parameters. The caller closes the body; Read
// does so.
func (c *Client) Get(ctx context.Context, path string, parameters url.Values) (*http.Response, error) {
	return c.do(ctx, http.MethodGet, path, parameters, nil)
}

// Post sends a value as JSON, or no body if the value is nil.
func (c *Client) Post(ctx context.Context, path string, value any) (*http.Response, error) {
	if value == nil {
		return c.do(ctx, http.MethodPost, path, nil, nil)
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the body for %s: %w", path, err)
	}
	return c.do(ctx, http.MethodPost, path, nil, body)
}

func (c *Client) do(
	ctx context.Context, method, path string, parameters url.Values, body []byte,
) (*http.Response, error) {
	to := c.base
	to.Path = strings.TrimSuffix(to.Path, "/") + path
	to.RawQuery = parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request for %s: %w", path, err)
	}
	if c.key != "" {
		request.Header.Set("x-api-key", c.key)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(request)
}

// Answer is a successful response of the API. Only lists have Meta.
type Answer[T any] struct {
	Data   T           `json:"data"`
	Meta   Meta        `json:"meta"`
	Header http.Header `json:"-"` // X-Indexed-Block and the others
}

// Error is the API's error response. Programs rely on Code, never on Message.
type Error struct {
	Status    int             `json:"-"`
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	RequestID string          `json:"requestId"`
	TraceID   string          `json:"traceId"` // empty unless the operator traces the request
	Details   json.RawMessage `json:"details"` // for some codes: which field was wrong, and why
	Header    http.Header     `json:"-"`       // Retry-After and the others
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

var errNoAnswer = errors.New("this is not a response of navlog")

// Read decodes the response of Get or Post, and closes it. If the API rejected the request, the error is an *Error.
func Read[T any](response *http.Response, err error) (answer Answer[T], _ error) {
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, fmt.Errorf("read the response of %s: %w", response.Request.URL.Path, err)
	}
	if response.StatusCode/100 != 2 { // tests and replays of webhooks are 202
		var refused struct{ Error *Error }
		if json.Unmarshal(body, &refused) != nil || refused.Error == nil {
			return answer, fmt.Errorf("%s responded with %d: %w", response.Request.URL.Path, response.StatusCode, errNoAnswer)
		}
		refused.Error.Status, refused.Error.Header = response.StatusCode, response.Header
		return answer, refused.Error
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("%s: %w: %w", response.Request.URL.Path, errNoAnswer, err)
	}
	answer.Header = response.Header
	return answer, nil
}
