package docs

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	pages "github.com/navlog/navlog/docs"
	"github.com/navlog/navlog/query/web"
)

var (
	ids   = regexp.MustCompile(` id="([^"]+)"`)
	links = regexp.MustCompile(`<a href="([^"]*)"`)
)

// served returns the bodies of the files by path.
func served() map[string]string {
	out := map[string]string{}
	for _, f := range Files() {
		out[f.Path] = string(f.Body)
	}
	return out
}

// leads reports whether a path and its anchor exist.
func leads(all map[string]string, to string) bool {
	at, anchor, named := strings.Cut(to, "#")
	body, ok := all[at]
	if at == "/docs" && named { // the operations, for which the page creates elements
		return strings.Contains(all["/openapi.json"], `"operationId":"`+anchor+`"`) ||
			strings.Contains(all["/openapi.json"], `"operationId": "`+anchor+`"`)
	}
	for _, id := range ids.FindAllStringSubmatch(body, -1) {
		named = named && id[1] != anchor
	}
	return ok && !named
}

// TestEveryPageIsServed: every page is served, has a title, and has no broken link.
func TestEveryPageIsServed(t *testing.T) {
	all, count := served(), 0
	err := fs.WalkDir(pages.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		count++
		at := pathOf(name)
		body, ok := all[at]
		if !ok || strings.Contains(body, "<title> ·") || strings.Contains(body, " style=") {
			t.Errorf("%s is not served at %s with a title and without styles", name, at)
		}
		for _, link := range links.FindAllStringSubmatch(body, -1) {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				to = at + to
			}
			if !slices.Contains(web.Paths, to) && !strings.HasPrefix(to, "https://") && !leads(all, to) {
				t.Errorf("%s: the link %s is broken", at, to)
			}
		}
		return nil
	})
	if err != nil || count < 15 {
		t.Errorf("%d pages: %v", count, err)
	}
	if leads(all, "/docs/architecture#nothing") || leads(all, "/docs/nothing") || leads(all, "/docs#nothing") {
		t.Error("a link to a missing page counts as valid")
	}
}

// TestSearchIndex: the index contains the words of every page and the operations of the API, and its links work.
func TestSearchIndex(t *testing.T) {
	all := served()
	var found []section
	if err := json.Unmarshal([]byte(all["/docs/search.json"]), &found); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"/docs/architecture#invariants": false, "/docs#listVaultUsers": false, "/docs/adr": false}
	for _, s := range found {
		if !leads(all, s.Path) || s.Page == "" || s.Title == "" {
			t.Errorf("%+v: the link is broken", s)
		}
		if s.Path == "/docs/architecture#invariants" && !strings.Contains(s.Text, "ClickHouse is disposable.") {
			t.Errorf("the words of a section are %q", s.Text)
		}
		want[s.Path] = true
	}
	for at, seen := range want {
		if !seen {
			t.Errorf("%s is not in the index", at)
		}
	}
	if size := len(all["/docs/search.json"]); size > 350_000 {
		t.Errorf("the index is %d bytes", size)
	}
}

// TestHTMLInAPage: HTML in a page is dropped, and a link to something that is not served becomes text.
func TestHTMLInAPage(t *testing.T) {
	p, err := render("adr/x.md",
		[]byte("# A <script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[a](javascript:alert(1)) "+
			"[b](../../go.mod) [c](../api.md#errors) `<pre>`\n"))
	if err != nil {
		t.Fatal(err)
	}
	body := string(p.Body)
	for _, bad := range []string{"<script", "<img", "javascript:", "go.mod"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is in %s", bad, body)
		}
	}
	for _, good := range []string{`<a href="/docs/api#errors">c</a>`, " b ", "<code>&lt;pre&gt;</code>"} {
		if !strings.Contains(body, good) {
			t.Errorf("%s is not in %s", good, body)
		}
	}
}
