package docs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/openapi"
)

// TestDescriptionsAreRendered: no Markdown remains in a rendered description, no description is lost, and the
// document itself is unchanged.
func TestDescriptionsAreRendered(t *testing.T) {
	var written, shown any
	for _, read := range []struct {
		body []byte
		into *any
	}{{openapi.JSON(), &written}, {reference(), &shown}} {
		if err := json.Unmarshal(read.body, read.into); err != nil {
			t.Fatal(err)
		}
	}
	source := regexp.MustCompile("`[^`]+`|\\*\\*[^*]+\\*\\*|(?m)^\\|.*\\|$|\\[[^\\]]+\\]\\(")
	tags := regexp.MustCompile(`<[^>]*>`)
	before, after := descriptions(written, ""), descriptions(shown, "")
	if len(before) != len(after) || len(after) < 200 {
		t.Fatalf("%d descriptions are written, %d shown", len(before), len(after))
	}
	marked := 0
	for at, text := range after {
		if source.MatchString(before[at]) {
			marked++
		}
		if m := source.FindString(tags.ReplaceAllString(text, "")); m != "" {
			t.Errorf("%s shows its Markdown: %q", at, m)
		}
		if !strings.HasPrefix(text, "<") {
			t.Errorf("%s is not rendered: %q", at, text)
		}
	}
	if marked < 20 {
		t.Errorf("only %d descriptions have Markdown", marked)
	}
	if conventions := after["/info"]; !strings.Contains(conventions, "<strong>Envelope.</strong>") ||
		!strings.Contains(conventions, "<code>meta</code>") {
		t.Errorf("the conventions are shown as %.200s", conventions)
	}
}

// descriptions returns the descriptions of a document by their path, without those in examples.
func descriptions(node any, at string) map[string]string {
	out := map[string]string{}
	if items, ok := node.([]any); ok {
		for i, item := range items {
			for k, v := range descriptions(item, at+"/"+string(rune('0'+i))) {
				out[k] = v
			}
		}
	}
	if fields, ok := node.(map[string]any); ok {
		for key, value := range fields {
			if text, ok := value.(string); ok && key == "description" {
				out[at] = text
			} else if key != "examples" && key != "example" {
				for k, v := range descriptions(value, at+"/"+key) {
					out[k] = v
				}
			}
		}
	}
	return out
}
