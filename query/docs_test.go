package query

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// References in the page, and in what it loads, that a browser would follow by itself.
var (
	cssReference = regexp.MustCompile(`(?i)@import|url\(|image-set\(`)
	jsReference  = regexp.MustCompile(`(?:fetch|import|Worker|WebSocket|EventSource|importScripts)\(\s*(['"` + "`" +
		`][^'"` + "`" + `]*)`)
	jsInline = regexp.MustCompile(`(?i)\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\.style\b|setAttribute\(\s*['"](?:on|style)`)
)

// TestDocsKeepToTheirPolicy loads the page as a browser does, with everything that it refers to. All of it is served
// by navlog under default-src 'self', and nothing needs more than that: no inline script, no inline style, no handler
// in an attribute, no text that is executed.
func TestDocsKeepToTheirPolicy(t *testing.T) {
	w := newWorld(t)
	loaded := map[string]bool{}
	load := func(path string) []byte {
		t.Helper()
		loaded[path] = true
		r := w.Do("GET", path, nil)
		if r.Code != 200 {
			t.Fatalf("%s: %d", path, r.Code)
		}
		policy := strings.Split(r.Header().Get("Content-Security-Policy"), "; ")
		if policy[0] != "default-src 'self'" || strings.Contains(strings.Join(policy, ""), "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		return r.Body.Bytes()
	}
	for _, reference := range loadedBy(t, load("/docs")) {
		at, err := url.Parse(reference)
		if err != nil || at.IsAbs() || at.Host != "" || !strings.HasPrefix(at.Path, "/") {
			t.Errorf("the page loads %q from elsewhere", reference)
			continue
		}
		body := load(reference)
		switch {
		case strings.HasSuffix(reference, ".css"):
			if m := cssReference.Find(body); m != nil {
				t.Errorf("%s contains %s", reference, m)
			}
		case strings.HasSuffix(reference, ".js"):
			if m := jsInline.Find(body); m != nil {
				t.Errorf("%s contains %s", reference, m)
			}
			for _, m := range jsReference.FindAllSubmatch(body, -1) {
				load(string(m[1][1:]))
			}
		}
	}
	for _, path := range []string{"/docs/architecture", "/docs/adr"} {
		for _, reference := range loadedBy(t, load(path)) {
			if !loaded[reference] {
				t.Errorf("%s loads %s, which the page of the API does not", path, reference)
			}
		}
	}
	for _, path := range []string{"/docs/docs.css", "/docs/docs.js", "/docs/theme.js", "/docs/search.js",
		"/docs/search.json", "/docs/reference.json"} {
		if !loaded[path] {
			t.Errorf("the page does not load %s", path)
		}
	}
}

// loadedBy returns the references of a page that a browser loads by itself. A reference that the policy would block
// is an error.
func loadedBy(t *testing.T, page []byte) (references []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	inside := ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			return references
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			if text := bytes.TrimSpace(token); len(text) > 0 && (inside == "script" || inside == "style") {
				t.Errorf("inline %s: %.40s", inside, text)
			}
		case xml.EndElement:
			inside = ""
		case xml.StartElement:
			inside = token.Name.Local
			for _, a := range token.Attr {
				switch name := a.Name.Local; {
				case name == "style" || strings.HasPrefix(name, "on") || strings.HasPrefix(a.Value, "javascript:"):
					t.Errorf("<%s %s=%q> is blocked by the policy", inside, name, a.Value)
				case name == "src" || name == "srcset" || name == "data" || name == "href" && inside == "link":
					references = append(references, a.Value)
				}
			}
		}
	}
}
