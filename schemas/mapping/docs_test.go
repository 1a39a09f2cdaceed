package mapping

import (
	"os"
	"strings"
	"testing"
)

// TestDocs checks that the examples of docs/mappings.md have no mistakes, and that the page names every effect and
// every field.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/mappings.md")
	must(t, err)
	page := string(text)
	examples := strings.Split(page, "```yaml\n")[1:]
	checked := 0
	for _, example := range examples {
		example, _, _ = strings.Cut(example, "```")
		if strings.HasPrefix(example, "chain:") {
			continue // an example of the configuration
		}
		checked++
		if err := Check("docs/mappings.md", []byte(example)); err != nil {
			t.Error(err)
		}
	}
	if checked < 2 {
		t.Fatalf("the page has %d examples", checked)
	}
	example, err := os.ReadFile("../../docs/mappings/susds.yaml")
	must(t, err)
	if err := Check("docs/mappings/susds.yaml", example); err != nil {
		t.Error(err)
	}
	for k := Deposit; k < kindCount; k++ {
		if !strings.Contains(page, "`"+k.String()+"`") {
			t.Errorf("the page has no effect `%s`", k)
		}
		for _, f := range effects[k].fields {
			if !strings.Contains(page, "`"+f.name+"`") {
				t.Errorf("the page has no field `%s`", f.name)
			}
		}
	}
}
