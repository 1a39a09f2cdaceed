package explain

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/serve"
)

const (
	root = "/api/v1"
	// longest is the maximum length of a path or pointer in bytes; those of the table are shorter.
	longest = 200
)

// target is the number that a client requests to be explained.
type target struct {
	number  number
	of      string          // path of the response, as the client wrote it
	field   string          // JSON pointer to the number, as the client wrote it
	address common.Address  // in the path; zero: none
	filter  *common.Address // parameter vault of the response; nil: none
	place   string          // in a list of vaults: an index or an address; empty: the number is in no such list
	member  common.Address  // address in a list of users; zero: the number is in no such list
}

// NeedsKey reports whether a request is about the numbers of a partner, which need the partner's key, even if the
// request is otherwise invalid.
func NeedsKey(params url.Values) bool {
	path, _, _ := strings.Cut(params.Get("of"), "?")
	return path == root+ofPartner
}

// read parses the number to explain. Mistakes are added to the faults of params.
func read(params *serve.Params) target {
	t := target{of: params.Get("of"), field: params.Get("field")}
	path, query, _ := strings.Cut(t.of, "?")
	var paths, fields []string // of all responses with numbers, and of the numbers of this one
	var address, place string
	for _, n := range numbers {
		if !slices.Contains(paths, root+n.of) {
			paths = append(paths, root+n.of)
		}
		if variable, ok := match(path, root+n.of); ok {
			address, fields = variable, append(fields, n.field)
			if variable, ok := match(t.field, n.field); ok {
				place, t.number = variable, n
			}
		}
	}
	switch {
	case len(fields) == 0 || len(t.of) > longest:
		params.Fault("of", "must be the path of an answer with numbers, without host: "+strings.Join(paths, ", "))
		return t
	case address != "":
		t.address = params.Address("of", address)
	}
	t.readQuery(params, path == root+ofDeposits || path == root+ofRequests, query)
	switch {
	case t.number.logs == nil || len(t.field) > longest:
		params.Fault("field", "must be a JSON pointer to a number of that answer: "+strings.Join(fields, ", "))
	case t.number.of == ofMember:
		t.member = params.Address("field", place)
	case place != "" && !isIndex(place) && !serve.IsAddress(place):
		params.Fault("field", aVault+" must be the index in the list, without leading zeros, or the address of the vault")
	default:
		t.place = place
	}
	return t
}

// readQuery parses the query in the path of the response: its only parameter is vault, if the response is filtered by
// it.
func (t *target) readQuery(params *serve.Params, filtered bool, query string) {
	values, err := url.ParseQuery(query)
	if err != nil {
		params.Fault("of", "must have a query of name=value pairs, percent-encoded once more than in the path itself")
		return
	}
	for name, given := range values {
		switch {
		case name != "vault" || !filtered:
			params.Fault("of", "must have no parameters but the vault of a queue: asOfBlock, page and pageSize are separate "+
				"parameters")
			return
		case given[0] != "": // an empty parameter counts as absent, and only the first of repeated ones counts
			vault := params.Address("of", given[0])
			t.filter = &vault
		}
	}
}

// match compares a path or pointer with a pattern, and returns the value of its variable part. A pointer may escape ~
// and /, but no pattern has these characters.
func match(given, pattern string) (variable string, ok bool) {
	parts, expected := strings.Split(given, "/"), strings.Split(pattern, "/")
	if len(parts) != len(expected) {
		return "", false
	}
	for i, part := range parts {
		switch expected[i] {
		case anAddress, aVault, aUser:
			if variable = part; part == "" {
				return "", false
			}
		case part:
		default:
			return "", false
		}
	}
	return variable, true
}

// isIndex reports whether s is an array index of a JSON pointer (RFC 6901): digits without leading zeros.
func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && fmt.Sprint(n) == s
}
