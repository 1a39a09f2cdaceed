// Package api calls the public HTTP API for the commands: through schemas/client, with limits on time and size, and
// with one-sentence errors that have the right exit code.
package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/input"
)

// Config is the address of the API and how to call it.
type Config struct {
	URL string // address of the API, http or https
	Key string // API key of a partner; empty: none
	// Within is the time limit of one response, up to its last byte; 0: 30 seconds.
	Within time.Duration
	// MaxBytes limits the size of a response; 0: 16 MiB, more than any page needs, even one with proofs.
	MaxBytes int64
	// Patient retries when the API asks for it (429 or 503 with Retry-After), at most 20 times: for reading many pages
	// in a row, which a rate limit may spread over minutes.
	Patient bool
}

const (
	within     = 30 * time.Second
	maxBytes   = 16 << 20
	maxRetries = 20
	// longestDelay is the longest Retry-After that the client waits for. The API sends a longer one only when the daily
	// limit of proofs is used up.
	longestDelay = 2 * time.Minute
)

// New checks the address of the API. Its errors have the code Usage and name the flag --url.
func New(c Config) (*client.Client, error) {
	address, err := input.Word(c.URL)
	if err != nil {
		return nil, cli.Usage.With(fmt.Errorf("--url %w", err))
	}
	made, err := client.New(address, c.Key, &bounded{
		max:     cmp.Or(c.MaxBytes, maxBytes),
		patient: c.Patient,
		http: http.Client{
			Timeout: cmp.Or(c.Within, within),
			// Redirects are not followed: the key is meant for this address only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		return nil, cli.Usage.With(fmt.Errorf("--url is %q and must be the address of the API, such as "+
			"https://navlog.example", c.URL))
	}
	return made, nil
}

// bounded sends requests within the limits of a Config.
type bounded struct {
	http    http.Client
	max     int64
	patient bool
}

// Do sends a request and, if patient, retries it when the API asks for that. Its errors have the code Unreachable,
// unless the request's context has ended: then the client stopped waiting, and the API may well be up.
func (b *bounded) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", "navlog/"+cli.BuildVersion())
	for try := 1; ; try++ {
		response, err := b.http.Do(request)
		if err != nil {
			return nil, noResponse(request, unreachable(request, err))
		}
		response.Request = request // not its copy, whose context ends after Within
		response.Body = http.MaxBytesReader(nil, response.Body, b.max)
		wait, retry := retryDelay(response)
		if !b.patient || !retry || try == maxRetries || request.Method != http.MethodGet {
			return response, nil
		}
		response.Body.Close()
		select {
		case <-request.Context().Done():
			return nil, noResponse(request, request.Context().Err())
		case <-time.After(wait):
		}
	}
}

// noResponse wraps the error of a request that got no response, or only part of one.
func noResponse(request *http.Request, err error) error {
	if request.Context().Err() != nil {
		return cli.Failed.With(err)
	}
	return cli.Unreachable.With(err)
}

// unreachable names the API in the error of a request that got no response, in place of net/http, which names the
// method and the whole URL.
func unreachable(request *http.Request, err error) error {
	if plain, ok := errors.AsType[*url.Error](err); ok {
		err = plain.Err
	}
	api := request.URL.Scheme + "://" + request.URL.Host
	if request.Context().Err() != nil { // the command was interrupted: the API may well be up
		return fmt.Errorf("reach the API at %s: %w", api, err)
	}
	return fmt.Errorf("reach the API at %s: %w; check --url and that the API is up", api, err)
}

// retryDelay reports whether the API asks for a retry, and after how long.
func retryDelay(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err == nil && seconds >= 0 && seconds <= int(longestDelay/time.Second)
}

// Read is client.Read with errors for the commands. It closes the response that a method of the client returned.
// Numbers whose type T leaves open become json.Number.
func Read[T any](response *http.Response, err error) (answer client.Answer[T], _ error) {
	body, err := Text(response, err)
	if err != nil {
		return answer, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return answer, fmt.Errorf("%s did not send a response of navlog: %v: is that its API?", at(response), err)
	}
	answer.Header = response.Header
	return answer, nil
}

// Text is Read without decoding, for responses that are kept as they are. If the API rejected the request, the error
// has the API's reason.
func Text(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%s sent more than %d bytes: is that the API of navlog?", at(response), large.Limit)
	}
	if err != nil {
		return nil, noResponse(response.Request, fmt.Errorf("read the response of %s: %w", at(response), err))
	}
	if response.StatusCode != http.StatusOK {
		return nil, refused(response, body)
	}
	return body, nil
}

// refused turns an error response into the caller's error.
func refused(response *http.Response, body []byte) error {
	if to, err := response.Location(); err == nil {
		return cli.Usage.With(fmt.Errorf("%s has moved to %s: use that address as --url", at(response), to.Redacted()))
	}
	var answer struct{ Error client.Error }
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code == "" {
		err := fmt.Errorf("%s responded with %d: is that the API of navlog?", at(response), response.StatusCode)
		switch response.StatusCode {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			// a proxy's, which does not reach the API
			return cli.Unreachable.With(
				fmt.Errorf("%w If it is, navlog is not running, or the proxy in front of it cannot reach it", err))
		}
		return err
	}
	said := strings.TrimSpace(answer.Error.Message + " " + string(answer.Error.Details))
	err := fmt.Errorf("%s responded with %d: %s", at(response), response.StatusCode, cli.Printable(said))
	switch response.StatusCode {
	case http.StatusBadRequest:
		return cli.Usage.With(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return cli.Configuration.With(err)
	case http.StatusServiceUnavailable:
		return cli.Unreachable.With(err)
	}
	return err
}

// at names the address of a request, without its parameters.
func at(response *http.Response) string {
	u := *response.Request.URL
	u.RawQuery = ""
	return u.Redacted()
}
