package contracts

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/printable"
)

// EndpointName is what may be shown of a node's URL: scheme and host. Providers put keys into the rest.
func EndpointName(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return "(no URL)"
	}
	return u.Scheme + "://" + u.Host
}

// Discreet gives an error of a node the text that may be shown and stored: printable, of bounded length, and with one
// short line of the answer where the answer is no JSON-RPC. What EndpointName leaves out of the URL is not in it: net/http puts the URL into its errors, and a server may
// say the path again in its answer. To errors.Is and errors.As the error is what it was.
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
		text = strings.ReplaceAll(text, status.Error(), fmt.Sprintf("%s: %.200s", status.Status, strings.Join(strings.Fields(string(status.Body)), " ")))
	}
	u, fault := url.Parse(rawURL)
	if fault != nil {
		return &discreetError{"the URL of the node cannot be read", err} // nor can be said what of it is a key
	}
	text = text[:min(len(text), searched)]
	for _, secret := range secrets(u) {
		text = strings.ReplaceAll(text, secret, "(hidden)")
	}
	text = printable.Text(text, printable.Message)
	if text == err.Error() {
		return err
	}
	return &discreetError{text, err}
}

// searched is how much of an error is looked through for keys: a message of a node may have megabytes.
const searched = 64 << 10

type discreetError struct {
	text string
	err  error
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.err }

// shortestKey is the length from which a piece of a URL may be a key: hiding rpc or v3 would only spoil sentences.
const shortestKey = 6

// secrets gives the pieces of a URL that may be keys, as a URL writes them and as they are, the longest first.
func secrets(u *url.URL) (all []string) {
	all = append(all, u.RequestURI(), u.Fragment, u.User.Username())
	password, _ := u.User.Password()
	all = append(all, password, url.QueryEscape(password), u.User.String())
	all = append(all, strings.Split(u.EscapedPath(), "/")...)
	all = append(all, strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		for _, value := range values {
			all = append(all, value, url.QueryEscape(value))
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < shortestKey })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
