package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
)

// numberOf is the answer that shows a number: its path, and how it is asked for.
type numberOf struct {
	path string
	ask  func(ctx context.Context, api *client.Client, asOfBlock *int64) (*http.Response, error)
}

func ofUser(address string) numberOf {
	return numberOf{"/api/v1/users/" + address, func(ctx context.Context, api *client.Client, block *int64) (*http.Response, error) {
		return api.GetUser(ctx, address, &client.GetUserParams{AsOfBlock: block})
	}}
}

func ofVault(address string) numberOf {
	return numberOf{"/api/v1/vaults/" + address, func(ctx context.Context, api *client.Client, block *int64) (*http.Response, error) {
		return api.GetVault(ctx, address, &client.GetVaultParams{AsOfBlock: block})
	}}
}

var ofSettlement = numberOf{"/api/v1/settlement/summary", func(ctx context.Context, api *client.Client, block *int64) (*http.Response, error) {
	return api.GetSettlementSummary(ctx, &client.GetSettlementSummaryParams{AsOfBlock: block})
}}

var ofPartner = numberOf{"/api/v1/partner/stats", func(ctx context.Context, api *client.Client, block *int64) (*http.Response, error) {
	return api.GetPartnerStats(ctx, &client.GetPartnerStatsParams{AsOfBlock: block})
}}

// explanation is a number that is being explained.
type explanation struct {
	explainFlags
	api    *client.Client
	out    io.Writer
	of     numberOf
	field  string
	unit   unit
	node   *ethclient.Client // the reader's own; nil: none
	mapped *mapped           // how the logs of vaults are mapped; nil without proofs
	tell   func(what string, done, of uint64)
}

// readUnit reads how the number is to be read: shares have the decimals of the vault, a NAV
// 18, amounts those of the asset, and counts and times none. What is added up over vaults
// whose assets differ stays in native units.
func (x *explanation) readUnit(ctx context.Context) error {
	if counts.MatchString(x.field) || x.field == "/firstSeen" {
		return nil
	}
	answer, err := api.Read[client.VaultListAnswer](x.api.ListVaults(ctx, nil))
	if err != nil {
		return err
	}
	var all []unit
	for _, v := range answer.Is.Data {
		u := unit{v.Asset.Decimals, v.Asset.Symbol}
		switch x.field {
		case "/totalSupply":
			u = unit{v.Decimals, v.Symbol}
		case "/navPerShare":
			u = unit{18, ""}
		}
		if strings.Contains(strings.ToLower(x.of.path+x.field), strings.ToLower(v.Address)) {
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
func (x *explanation) number(ctx context.Context) (block int64, shown *string, err error) {
	answer, err := api.Read[struct{ Data any }](x.of.ask(ctx, x.api, x.AsOf))
	if err != nil {
		return 0, nil, err
	}
	value, err := pointed(answer.Is.Data, x.field)
	if err != nil {
		return 0, nil, cli.Usage.With(fmt.Errorf("%s has no number %s: %w", x.of.path, x.field, err))
	}
	if block, err = strconv.ParseInt(answer.Header.Get("X-Indexed-Block"), 10, 64); err != nil {
		return 0, nil, fmt.Errorf("%s names no X-Indexed-Block: is a proxy removing it?", x.of.path)
	}
	if x.AsOf != nil && block != *x.AsOf {
		return 0, nil, cli.Different.With(fmt.Errorf("%s was asked for as of block %d, and the answer is as of block %d", x.of.path, *x.AsOf, block))
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

// explanationPage is a page of an explanation, its events as they came: they are shown as such.
type explanationPage struct {
	Data struct {
		Operation string
		Events    []json.RawMessage
	}
	Meta client.PaginationMeta
}

func (x *explanation) page(ctx context.Context, block int64, number int) (explanationPage, error) {
	size := 100
	params := client.ExplainParams{Of: x.of.path, Field: x.field, AsOfBlock: &block, Page: &number, PageSize: &size}
	if x.Proof {
		proof := client.ExplainParamsProofTrue
		size, params.Proof = provenPage, &proof
	}
	if x.Retracted {
		retracted := client.ExplainParamsRetractedTrue
		params.Retracted = &retracted
	}
	answer, err := api.Read[explanationPage](x.api.Explain(ctx, &params))
	return answer.Is, err
}
