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
	of, variable, ok := match(path, paths())
	switch {
	case !ok || len(t.of) > longest:
		params.Fault("of", "must be the path of an answer with numbers, without host: "+strings.Join(paths(), ", "))
		return t
	case variable != "":
		t.address = params.Address("of", variable)
	}
	t.readQuery(params, of, query)
	fields := fieldsOf(of)
	field, variable, ok := match(t.field, fields)
	if !ok || len(t.field) > longest {
		params.Fault("field", "must be a JSON pointer to a number of that answer: "+strings.Join(fields, ", "))
		return t
	}
	t.number = numbers[slices.IndexFunc(numbers, func(n number) bool { return root+n.of == of && n.field == field })]
	if t.number.of == ofMember {
		t.member = params.Address("field", variable)
		return t
	}
	t.place = variable
	if variable != "" && !isIndex(variable) && !serve.IsAddress(variable) {
		params.Fault("field", aVault+" must be the index in the list, without leading zeros, or the address of the vault")
	}
	return t
}

// readQuery parses the query in the path of the response: its only parameter is vault, if the response accepts one.
func (t *target) readQuery(params *serve.Params, of, query string) {
	values, err := url.ParseQuery(query)
	if err != nil {
		params.Fault("of", "must have a query of name=value pairs, percent-encoded once more than in the path itself")
		return
	}
	for name, given := range values {
		switch {
		case name != "vault" || !filtered(strings.TrimPrefix(of, root)):
			params.Fault("of", "must have no parameters but the vault of a queue: asOfBlock, page and pageSize are separate "+
				"parameters")
			return
		case given[0] != "": // an empty parameter counts as absent, and only the first of repeated ones counts
			vault := params.Address("of", given[0])
			t.filter = &vault
		}
	}
}

// paths returns the paths of the responses that contain numbers.
func paths() (out []string) {
	for _, n := range numbers {
		if path := root + n.of; !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// fieldsOf returns the pointers to the numbers of the response at a path.
func fieldsOf(path string) (out []string) {
	for _, n := range numbers {
		if root+n.of == path {
			out = append(out, n.field)
		}
	}
	return out
}

// match finds the pattern of a path or pointer, and the value of its variable part; ok is false if no pattern matches.
// A pointer may escape ~ and /, but no pattern has these characters.
func match(given string, patterns []string) (pattern, variable string, ok bool) {
	parts := strings.Split(given, "/")
	for _, pattern := range patterns {
		variable, ok := "", true
		expected := strings.Split(pattern, "/")
		if len(expected) != len(parts) {
			continue
		}
		for i, part := range parts {
			if expected[i] == anAddress || expected[i] == aVault || expected[i] == aUser {
				variable, ok = part, ok && part != ""
			} else {
				ok = ok && part == expected[i]
			}
		}
		if ok {
			return pattern, variable, true
		}
	}
	return "", "", false
}

// isIndex reports whether s is an array index of a JSON pointer (RFC 6901): digits without leading zeros.
func isIndex(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && fmt.Sprint(n) == s
}
