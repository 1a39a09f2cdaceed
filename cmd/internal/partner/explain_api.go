package partner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/mapping"
)

// explanation is the state of explaining one number.
type explanation struct {
	explainFlags
	api    *client.Client
	out    io.Writer
	of     string // path of the response with the number
	field  string
	unit   unit
	node   *ethclient.Client                           // the reader's own; may be nil
	mapped func(vault common.Address) *mapping.Sources // how the logs of vaults are mapped; nil without proofs
	titled bool                                        // whether the headings of the table are printed
	report func(what string, done, of uint64)
}

// readUnit reads the unit of the number: shares have the decimals of the vault, a NAV has 18, amounts have those of the
// asset, and counts and times have none. Sums over vaults with different assets stay in native units.
func (x *explanation) readUnit(ctx context.Context) error {
	if counts.MatchString(x.field) || x.field == "/firstSeen" {
		return nil
	}
	answer, err := api.Read[[]client.Vault](x.api.Get(ctx, "/api/v1/vaults", nil))
	if err != nil {
		return err
	}
	var all []unit
	for _, v := range answer.Data {
		u := unit{v.Asset.Decimals, v.Asset.Symbol}
		switch x.field {
		case "/totalSupply":
			u = unit{v.Decimals, v.Symbol}
		case "/navPerShare":
			u = unit{18, ""}
		}
		if strings.Contains(strings.ToLower(x.of+x.field), strings.ToLower(v.Address)) {
			all = []unit{u} // a number of that vault only
			break
		}
		all = append(all, u)
	}
	if all = slices.Compact(all); len(all) == 1 {
		x.unit = all[0]
	}
	return nil
}

// number reads the number from the API's own response, nil for null, and the block of that response.
func (x *explanation) number(ctx context.Context) (block int64, shown *string, err error) {
	answer, err := api.Read[any](x.api.Get(ctx, x.of, asOf(x.AsOf)))
	if err != nil {
		return 0, nil, err
	}
	value, err := resolvePointer(answer.Data, x.field)
	if err != nil {
		return 0, nil, cli.Usage.With(fmt.Errorf("%s has no number %s: %w", x.of, x.field, err))
	}
	if block, err = strconv.ParseInt(answer.Header.Get("X-Indexed-Block"), 10, 64); err != nil {
		return 0, nil, fmt.Errorf("%s has no X-Indexed-Block: is a proxy removing it?", x.of)
	}
	if x.AsOf != nil && block != *x.AsOf {
		return 0, nil, cli.Different.With(fmt.Errorf("%s was requested as of block %d, but the response is as of block %d",
			x.of, *x.AsOf, block))
	}
	if value != nil {
		text := fmt.Sprint(value)
		shown = &text
	}
	return block, shown, nil
}

// resolvePointer follows a JSON pointer; list elements are selected by index or by the address of a vault.
func resolvePointer(value any, pointer string) (any, error) {
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
		return nil, errors.New("it is not a number")
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

// explanationPage is a page of an explanation; its events stay raw, because they are printed as received.
type explanationPage struct {
	Operation string
	Events    []json.RawMessage
}

func (x *explanation) page(ctx context.Context, block int64, number int) (client.Answer[explanationPage], error) {
	size, parameters := 100, asOf(&block)
	parameters.Set("of", x.of)
	parameters.Set("field", x.field)
	parameters.Set("page", strconv.Itoa(number))
	if x.Proof {
		size = provenPage
		parameters.Set("proof", "true")
	}
	if x.Retracted {
		parameters.Set("retracted", "true")
	}
	parameters.Set("pageSize", strconv.Itoa(size))
	return api.Read[explanationPage](x.api.Get(ctx, "/api/v1/explain", parameters))
}

// asOf returns the parameters that select a block; nil is the newest one.
func asOf(block *int64) url.Values {
	if block == nil {
		return url.Values{}
	}
	return url.Values{"asOfBlock": {strconv.FormatInt(*block, 10)}}
}
