// Package api is how the commands ask the public HTTP API: through schemas/client, within bounds of
// time and size, and with errors that say in one sentence what went wrong, with the exit code that
// it means.
package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/input"
)

// Config says where the API is and what may be asked of it.
type Config struct {
	URL string // its address, http or https
	Key string // of a partner; empty: none
	// Within is how long one answer may take, up to its last byte; 0: 30 seconds.
	Within time.Duration
	// MaxBytes bounds an answer; 0: 16 MiB, more than any page has, also one with proofs.
	MaxBytes int64
	// Patient comes back when the API asks for it (429 or 503 with Retry-After), 20 times at
	// most: for many pages in a row, which a limit may spread over minutes.
	Patient bool
}

const (
	within    = 30 * time.Second
	maxBytes  = 16 << 20
	comebacks = 20
	// longest is how long the API asks nobody to stay away: who names more is not waited for.
	longest = 2 * time.Minute
)

// New reads the address. Errors are Usage: of the flag --url, which has it.
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
			// A key is for this address and for no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		return nil, cli.Usage.With(fmt.Errorf("--url is %q and must be the address of the API, such as https://navlog.example", c.URL))
	}
	return made, nil
}

// bounded sends requests.
type bounded struct {
	http    http.Client
	max     int64
	patient bool
}

// Do sends a request, and again where it is patient and asked to. Its errors are Unreachable,
// but for the end of the request's context: then it was given up, and the API may well be there.
func (b *bounded) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", "navlog/"+cli.BuildVersion())
	for try := 1; ; try++ {
		response, err := b.http.Do(request)
		if err != nil {
			return nil, unanswered(request, err)
		}
		response.Request = request // and not the one that ends with Within too
		response.Body = http.MaxBytesReader(nil, response.Body, b.max)
		wait, asked := comeBack(response)
		if !b.patient || !asked || try == comebacks || request.Method != http.MethodGet {
			return response, nil
		}
		response.Body.Close()
		select {
		case <-request.Context().Done():
			return nil, unanswered(request, request.Context().Err())
		case <-time.After(wait):
		}
	}
}

// unanswered is an error without an answer, or in the midst of one.
func unanswered(request *http.Request, err error) error {
	if request.Context().Err() != nil {
		return cli.Failed.With(err)
	}
	return cli.Unreachable.With(err)
}

// comeBack is whether, and when, the API asks to come back.
func comeBack(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	wait := time.Duration(seconds) * time.Second
	return wait, err == nil && wait >= 0 && wait <= longest
}

// Answer is what the API said to a request that it did not refuse.
type Answer[T any] struct {
	Is     T
	Body   []byte // the same as it came
	Header http.Header
}

// Read reads what a method of the client gives, which is closed then. Numbers that T leaves open
// are json.Number. The error says what the API refused, and why.
func Read[T any](response *http.Response, err error) (Answer[T], error) {
	var answer Answer[T]
	body, err := Text(response, err)
	if err != nil {
		return answer, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer.Is); err != nil {
		return answer, fmt.Errorf("%s gave no answer of navlog: %w: is that its API?", at(response), err)
	}
	answer.Body, answer.Header = body, response.Header
	return answer, nil
}

// Text is Read for what is kept as it came.
func Text(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%s gave more than %d bytes: is that the API of navlog?", at(response), large.Limit)
	}
	if err != nil {
		return nil, unanswered(response.Request, fmt.Errorf("read what %s answers: %w", at(response), err))
	}
	if response.StatusCode != http.StatusOK {
		return nil, refused(response, body)
	}
	return body, nil
}

// refused is what an answer that is an error means to who asked.
func refused(response *http.Response, body []byte) error {
	if to, err := response.Location(); err == nil {
		return cli.Usage.With(fmt.Errorf("%s is moved to %s: give --url as it is there", at(response), to.Redacted()))
	}
	var answer struct {
		Error struct {
			Code, Message string
			Details       json.RawMessage
		}
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code == "" {
		return fmt.Errorf("%s answered %d: is that the API of navlog?", at(response), response.StatusCode)
	}
	said := strings.TrimSpace(answer.Error.Message + " " + string(answer.Error.Details))
	err := fmt.Errorf("%s answered %d: %s", at(response), response.StatusCode, cli.Printable(said))
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

// at names who was asked for what, without the parameters.
func at(response *http.Response) string {
	u := *response.Request.URL
	u.RawQuery = ""
	return u.Redacted()
}
