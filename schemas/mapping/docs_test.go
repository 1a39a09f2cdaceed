package mapping

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs checks that the examples of docs/mappings.md and the files of docs/mappings have no mistakes, and that the
// page links every file and names every effect and every field.
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
		if _, _, err := ParseFile("docs/mappings.md", []byte(example), Preset); err != nil {
			t.Error(err)
		}
	}
	if checked < 2 {
		t.Fatalf("the page has %d examples", checked)
	}
	files, err := filepath.Glob("../../docs/mappings/*.yaml")
	must(t, err)
	if len(files) < 2 {
		t.Fatalf("docs/mappings has %d files", len(files))
	}
	for _, file := range files {
		example, err := os.ReadFile(file)
		must(t, err)
		if _, _, err := ParseFile(file, example, Preset); err != nil {
			t.Error(err)
		}
		if name := filepath.Base(file); !strings.Contains(page, "(mappings/"+name+")") {
			t.Errorf("the page has no link to %s", name)
		}
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
