package contracts

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/printable"
)

// EndpointName returns the part of a node's URL that may be shown: scheme and host. Providers put keys into the rest.
func EndpointName(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return "(no URL)"
	}
	return u.Scheme + "://" + u.Host
}

// MaxAnswer is the maximum size of a node's response in bytes, after decompression: go-ethereum's own limit over a
// WebSocket.
const MaxAnswer = 32 << 20

// NodeClient returns a client for the calls of a node over HTTP. Responses end with an *http.MaxBytesError after
// MaxAnswer bytes. A redirect is not followed: net/http would send the URL, which may contain a key, to another host in
// the header Referer.
func NodeClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, MaxAnswer)
	}
	return response, err
}

// Discreet returns a node's error with a text that may be shown and stored: printable, of bounded length, and with one
// short line of the response if that is not JSON-RPC. It contains nothing of the URL that EndpointName leaves out:
// net/http puts the URL into its errors, and a server may repeat the path in its response. For errors.Is and errors.As
// the error is unchanged.
func Discreet(err error, rawURL string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var inURL *url.Error
	if errors.As(err, &inURL) {
		text = strings.ReplaceAll(text, inURL.Error(), inURL.Err.Error())
	}
	var status rpc.HTTPError
	if errors.As(err, &status) {
		text = strings.ReplaceAll(text, status.Error(),
			fmt.Sprintf("%s: %.200s", status.Status, strings.Join(strings.Fields(string(status.Body)), " ")))
	}
	if long := new(http.MaxBytesError); errors.As(err, &long) {
		text = strings.ReplaceAll(text, long.Error(), fmt.Sprintf("the response has more than %d MiB", MaxAnswer>>20))
	}
	u, fault := url.Parse(rawURL)
	if fault != nil {
		return &discreetError{"the URL of the node cannot be read", err} // without the URL it is unknown which parts are keys
	}
	text = text[:min(len(text), searched)]
	for _, secret := range secrets(u) {
		text = hide(text, secret)
	}
	text = printable.Text(text, printable.Message)
	if text == err.Error() {
		return err
	}
	return &discreetError{text, err}
}

// searched is how much of an error is searched for keys, in bytes: a node's message may have megabytes.
const searched = 64 << 10

type discreetError struct {
	text string
	err  error
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.err }

// shortestKey is the minimum length of a URL part that may be a key: hiding rpc or v3 would only spoil sentences.
const shortestKey = 6

// cutKey is the minimum length of the beginning of a key that is hidden, too: a quotation of a response may end within
// the key.
const cutKey = 10

// hide replaces each occurrence of a secret, or of its beginning.
func hide(text, secret string) string {
	var shown strings.Builder
	for {
		before, after, found := strings.Cut(text, secret[:min(len(secret), cutKey)])
		shown.WriteString(before)
		if !found {
			return shown.String()
		}
		shown.WriteString("(hidden)")
		for rest := secret[min(len(secret), cutKey):]; rest != "" && after != "" && rest[0] == after[0]; rest = rest[1:] {
			after = after[1:]
		}
		text = after
	}
}

// secrets returns the parts of a URL that may be keys, both encoded and decoded, the longest first.
func secrets(u *url.URL) (all []string) {
	all = append(all, u.RequestURI(), u.Fragment, u.User.Username())
	password, _ := u.User.Password()
	all = append(all, password, url.QueryEscape(password), u.User.String(),
		base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	all = append(all, strings.Split(u.EscapedPath(), "/")...)
	all = append(all, strings.Split(u.Path, "/")...)
	for name, values := range u.Query() {
		for _, value := range values {
			value = cmp.Or(value, name) // the whole query may be a key
			all = append(all, value, url.QueryEscape(value))
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < shortestKey })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
