package structure

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// placed matches a place in a page as messages and comments of deployment files name it: docs/operations.md, "Alerts".
// In a string of Go, the quotation marks are escaped.
var placed = regexp.MustCompile(`(docs/[a-z-]+\.md), (?:\\?"([^"\\]+)\\?"|([A-Za-z']+))`)

// TestHeadingsExist: a message or a deployment file that points to a place in a page names a heading of that page.
func TestHeadingsExist(t *testing.T) {
	root := os.DirFS("../../..")
	found := 0
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && file != "."):
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		switch filepath.Ext(file) {
		case ".go", ".yaml", ".tpl", ".sh", ".service", ".sql", ".xml":
		default:
			return nil
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		for _, place := range placed.FindAllStringSubmatch(string(text), -1) {
			found++
			page, err := fs.ReadFile(root, place[1])
			if err != nil {
				return err
			}
			if place[2] == "" || !regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(place[2])+`$`).Match(page) {
				t.Errorf("%s points to %s, which %s does not have as a heading: write it as it is there, in quotation marks", file,
					place[0], place[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no message points to a place in a page")
	}
}
