package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Text is a placeholder in an expected tree for human-readable text that cannot be predicted: any string except the
// empty one.
type Text struct{}

// Diff compares two JSON trees (of map[string]any, []any, string, json.Number, bool and nil) and returns a line for
// every difference: where it is, the expected value and the actual one. Numbers are compared as they are written.
func Diff(expected, got any) []string {
	return compare("", expected, got)
}

func compare(path string, expected, got any) []string {
	switch want := expected.(type) {
	case map[string]any:
		if have, ok := got.(map[string]any); ok {
			return compareObjects(path, want, have)
		}
	case []any:
		if have, ok := got.([]any); ok {
			return compareArrays(path, want, have)
		}
	case Text:
		if have, ok := got.(string); ok && have != "" {
			return nil
		}
	case string, json.Number, bool, nil:
		if expected == got {
			return nil
		}
	default:
		panic(fmt.Sprintf("an expected tree holds a %T at %s", expected, path))
	}
	return []string{fmt.Sprintf("%s: expected %s, got %s", at(path), Show(expected), Show(got))}
}

func compareObjects(path string, want, have map[string]any) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := have[key]; ok {
			found = append(found, compare(path+"."+key, want[key], value)...)
		} else {
			found = append(found, fmt.Sprintf("%s: expected %s, got no such field", at(path+"."+key), Show(want[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			found = append(found, fmt.Sprintf("%s: expected no such field, got %s", at(path+"."+key), Show(have[key])))
		}
	}
	return found
}

func compareArrays(path string, want, have []any) []string {
	var found []string
	for i := range max(len(want), len(have)) {
		here := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(have):
			found = append(found, fmt.Sprintf("%s: expected %s, got no more items", at(here), Show(want[i])))
		case i >= len(want):
			found = append(found, fmt.Sprintf("%s: expected no more items, got %s", at(here), Show(have[i])))
		default:
			found = append(found, compare(here, want[i], have[i])...)
		}
	}
	return found
}

func at(path string) string {
	if path == "" {
		return "the whole"
	}
	return strings.TrimPrefix(path, ".")
}

// Show formats a value on one line, truncated if it is long.
func Show(value any) string {
	if _, ok := value.(Text); ok {
		return "some text"
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	const limit = 300
	if len(b) > limit {
		return string(b[:limit]) + "..."
	}
	return string(b)
}

// Tree parses JSON into the types that Diff expects. Anything after the value is an error.
func Tree(b []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the JSON is followed by more text: %.300s", b)
	}
	return value, nil
}
