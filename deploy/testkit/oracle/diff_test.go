package oracle

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const sample = `{"ok":true,"data":[{"id":"a","assets":"12","logIndex":3,"sweptAt":null},{"id":"b","assets":"13","logIndex":4,"sweptAt":"2026-01-01T00:00:00.000Z"}],"meta":{"total":2}}`

func mustTree(t *testing.T, s string) any {
	t.Helper()
	value, err := Tree([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDiffOfEqualTreesIsEmpty(t *testing.T) {
	if found := Diff(mustTree(t, sample), mustTree(t, sample)); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}

func TestDiffNamesEveryDifference(t *testing.T) {
	for name, try := range map[string]struct {
		from, to string
		want     []string
	}{
		"a changed text":        {`"assets":"13"`, `"assets":"14"`, []string{`data[1].assets: expected "13", got "14"`}},
		"a changed number":      {`"logIndex":3`, `"logIndex":2`, []string{`data[0].logIndex: expected 3, got 2`}},
		"a number with a point": {`"logIndex":3`, `"logIndex":3.0`, []string{`data[0].logIndex: expected 3, got 3.0`}},
		"a number as a text":    {`"logIndex":3`, `"logIndex":"3"`, []string{`data[0].logIndex: expected 3, got "3"`}},
		"a text as a number":    {`"assets":"12"`, `"assets":12`, []string{`data[0].assets: expected "12", got 12`}},
		"a changed bool":        {`"ok":true`, `"ok":false`, []string{`ok: expected true, got false`}},
		"a null that is not":    {`"sweptAt":null`, `"sweptAt":""`, []string{`data[0].sweptAt: expected null, got ""`}},
		"a null that should not": {`"2026-01-01T00:00:00.000Z"`, `null`,
			[]string{`data[1].sweptAt: expected "2026-01-01T00:00:00.000Z", got null`}},
		"a missing field": {`"id":"a",`, ``, []string{`data[0].id: expected "a", got no such field`}},
		"a missing null":  {`,"sweptAt":null`, ``, []string{`data[0].sweptAt: expected null, got no such field`}},
		"an extra field":  {`"id":"b",`, `"id":"b","more":1,`, []string{`data[1].more: expected no such field, got 1`}},
		"an extra null":   {`"total":2`, `"total":2,"x":null`, []string{`meta.x: expected no such field, got null`}},
		"a missing item": {
			`,{"id":"b","assets":"13","logIndex":4,"sweptAt":"2026-01-01T00:00:00.000Z"}`, ``,
			[]string{`data[1]: expected {"assets":"13","id":"b","logIndex":4,"sweptAt":"2026-01-01T00:00:00.000Z"}, got no more items`},
		},
		"an extra item":          {`}],`, `},7],`, []string{`data[2]: expected no more items, got 7`}},
		"an object for an array": {`"meta":{"total":2}`, `"meta":[]`, []string{`meta: expected {"total":2}, got []`}},
		"two differences": {`"a","assets":"12"`, `"b","assets":"11"`,
			[]string{`data[0].assets: expected "12", got "11"`, `data[0].id: expected "a", got "b"`}},
	} {
		changed := strings.Replace(sample, try.from, try.to, 1)
		if changed == sample {
			t.Fatalf("%s: the change changes nothing", name)
		}
		if found := Diff(mustTree(t, sample), mustTree(t, changed)); !reflect.DeepEqual(found, try.want) {
			t.Errorf("%s: found %q, want %q", name, found, try.want)
		}
	}
}

func TestDiffOfSwappedItems(t *testing.T) {
	if found := Diff([]any{"a", "b"}, []any{"b", "a"}); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}

func TestTextIsAnyTextButNone(t *testing.T) {
	for _, try := range []struct {
		got  any
		same bool
	}{{"x", true}, {"", false}, {nil, false}, {json.Number("1"), false}, {map[string]any{}, false}} {
		if found := Diff(Text{}, try.got); (len(found) == 0) != try.same {
			t.Errorf("%v: found %q", try.got, found)
		}
	}
	if found := Diff(map[string]any{"message": Text{}}, map[string]any{}); len(found) != 1 {
		t.Errorf("a missing text: found %q", found)
	}
}

func TestTreeRefuses(t *testing.T) {
	for _, s := range []string{``, `{`, `{"a":1} {"b":2}`, `{"a":1}x`, `{"a":1}}`, `<html>`} {
		if value, err := Tree([]byte(s)); err == nil {
			t.Errorf("%q gave %v", s, value)
		}
	}
}
