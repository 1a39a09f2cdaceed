package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
)

// publicAPI is the HTTP API, as anybody can ask it.
type publicAPI struct {
	base *url.URL
	key  string // of a partner; empty: none
}

const (
	// maxAnswer bounds what is read of an answer, in bytes: a page is less, also with
	// proofs, which the API bounds by 4 MiB before they are written in hexadecimal.
	maxAnswer = 16 << 20
	// answerWithin is how long one answer may take, and comebacks how often an API that asks
	// for it is asked again.
	answerWithin = 30 * time.Second
	comebacks    = 20
)

// get asks for a path and decodes the answer into out. Where the API asks to come back later
// it does, for an explanation may be more pages than a limit lets through in a minute.
func (a *publicAPI) get(ctx context.Context, path string, query url.Values, out any) (http.Header, error) {
	u := a.base.JoinPath(path)
	u.RawQuery = query.Encode()
	for try := 1; ; try++ {
		response, body, err := a.once(ctx, u.String())
		if err != nil {
			return nil, err
		}
		later := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); later && err == nil && try < comebacks {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Duration(seconds) * time.Second):
			}
			continue
		}
		if response.StatusCode != http.StatusOK {
			return nil, refused(path, response.StatusCode, body)
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(out); err != nil {
			return nil, fmt.Errorf("%s is no answer of navlog: %w", path, err)
		}
		return response.Header, nil
	}
}

func (a *publicAPI) once(ctx context.Context, address string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	if a.key != "" {
		request.Header.Set("x-api-key", a.key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, cli.Unreachable.With(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, nil, cli.Unreachable.With(fmt.Errorf("read %s: %w", request.URL.Path, err))
	}
	return response, body, nil
}

// refused is what an answer that is an error means to who asked.
func refused(path string, status int, body []byte) error {
	var answer struct {
		Error struct {
			Code, Message string
			Details       json.RawMessage
		}
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code == "" {
		return fmt.Errorf("%s answered %d: is that the API of navlog?", path, status)
	}
	err := fmt.Errorf("%s answered %d: %s %s", path, status, answer.Error.Message, answer.Error.Details)
	switch status {
	case http.StatusBadRequest:
		return cli.Usage.With(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return cli.Configuration.With(err)
	case http.StatusServiceUnavailable:
		return cli.Unreachable.With(err)
	}
	return err
}

// explanation is a number that is being explained.
type explanation struct {
	explainFlags
	api       *publicAPI
	out       io.Writer
	of, field string
	unit      unit
	node      *ethclient.Client // the reader's own; nil: none
	tell      func(what string, done, of uint64)
}

// readUnit reads how the number is to be read: shares have the decimals of the vault, a NAV
// 18, amounts those of the asset, and counts and times none. What is added up over vaults
// whose assets differ stays in native units.
func (x *explanation) readUnit(ctx context.Context) error {
	if counts.MatchString(x.field) || x.field == "/firstSeen" {
		return nil
	}
	var answer struct {
		Data []struct {
			Address, Symbol string
			Decimals        int
			Asset           struct {
				Symbol   string
				Decimals int
			}
		}
	}
	if _, err := x.api.get(ctx, "/api/v1/vaults", nil, &answer); err != nil {
		return err
	}
	var all []unit
	for _, v := range answer.Data {
		u := unit{v.Asset.Decimals, printable(v.Asset.Symbol)}
		switch x.field {
		case "/totalSupply":
			u = unit{v.Decimals, printable(v.Symbol)}
		case "/navPerShare":
			u = unit{18, ""}
		}
		if strings.Contains(strings.ToLower(x.of+x.field), strings.ToLower(v.Address)) {
			all = []unit{u} // it is of that vault alone
			break
		}
		all = append(all, u)
	}
	if all = slices.Compact(all); len(all) == 1 {
		x.unit = all[0]
	}
	return nil
}

// number reads the number as the answer itself shows it, nil for null, and the block that
// it is about.
func (x *explanation) number(ctx context.Context) (block string, shown *string, err error) {
	query := url.Values{}
	if x.AsOf != nil {
		query.Set("asOfBlock", strconv.FormatUint(*x.AsOf, 10))
	}
	var answer struct{ Data any }
	header, err := x.api.get(ctx, x.of, query, &answer)
	if err != nil {
		return "", nil, err
	}
	value, err := pointed(answer.Data, x.field)
	if err != nil {
		return "", nil, cli.Usage.With(fmt.Errorf("%s has no number %s: %w", x.of, x.field, err))
	}
	if block = header.Get("X-Indexed-Block"); block == "" {
		return "", nil, fmt.Errorf("%s names no X-Indexed-Block: is a proxy removing it?", x.of)
	}
	if value != nil {
		text := fmt.Sprint(value)
		shown = &text
	}
	return block, shown, nil
}

// pointed follows a JSON pointer; a place in a list is an index or the address of a vault.
func pointed(value any, pointer string) (any, error) {
	for _, part := range strings.Split(pointer, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				return nil, fmt.Errorf("there is no %q", part)
			}
			value = next
		case []any:
			next, ok := inList(v, part)
			if !ok {
				return nil, fmt.Errorf("its list has no %q", part)
			}
			value = next
		default:
			return nil, fmt.Errorf("there is nothing below %q", part)
		}
	}
	switch value.(type) {
	case map[string]any, []any, bool:
		return nil, errors.New("it is no number")
	}
	return value, nil
}

func inList(list []any, place string) (any, bool) {
	if i, err := strconv.Atoi(place); err == nil {
		if i < 0 || i >= len(list) {
			return nil, false
		}
		return list[i], true
	}
	for _, one := range list {
		if entry, ok := one.(map[string]any); ok {
			if address, ok := entry["vaultAddress"].(string); ok && strings.EqualFold(address, place) {
				return one, true
			}
		}
	}
	return nil, false
}

// explanationPage is a page of an explanation.
type explanationPage struct {
	Data struct {
		Operation string
		Events    []json.RawMessage
	}
	Meta struct {
		Total       int64
		HasNextPage bool
	}
}

func (x *explanation) page(ctx context.Context, block string, number int) (p explanationPage, err error) {
	query := url.Values{"of": {x.of}, "field": {x.field}, "asOfBlock": {block}, "page": {strconv.Itoa(number)}, "pageSize": {"100"}}
	if x.Proof {
		query.Set("proof", "true")
		query.Set("pageSize", strconv.Itoa(provenPage))
	}
	if x.Retracted {
		query.Set("retracted", "true")
	}
	_, err = x.api.get(ctx, "/api/v1/explain", query, &p)
	return p, err
}
