package query

import (
	"embed"
	"net/http"

	"github.com/navlog/navlog/schemas/openapi"
)

// The page that reads the OpenAPI document and sends requests. It is plain
// HTML and JavaScript of our own and loads nothing from elsewhere.
//
//go:embed docs
var docsFiles embed.FS

// file is a document that is served as it is.
type file struct {
	kind string // Content-Type
	body []byte
}

// docs are the OpenAPI document and the page about it, by path.
func docs() map[string]file {
	out := map[string]file{
		"/openapi.yaml": {"application/yaml; charset=utf-8", openapi.YAML()},
		"/openapi.json": {"application/json; charset=utf-8", openapi.JSON()},
	}
	page := func(path, name, kind string) {
		body, err := docsFiles.ReadFile("docs/" + name)
		if err != nil {
			panic(err) // it is part of the binary
		}
		out[path] = file{kind, body}
	}
	page("/docs", "docs.html", "text/html; charset=utf-8")
	page("/docs/docs.js", "docs.js", "text/javascript; charset=utf-8")
	page("/docs/docs.css", "docs.css", "text/css; charset=utf-8")
	return out
}

// serveFile answers with a file. Nothing in a page may come from elsewhere.
func (q *Query) serveFile(f file) http.HandlerFunc {
	h := http.Header{}
	allowAnyOrigin(h)
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "public, no-cache")
	h.Set("Vary", "Accept-Encoding")
	finished, err := (&answer{raw: f.body, kind: f.kind}).finish(h)
	if err != nil {
		panic(err) // bytes need no encoding
	}
	return func(w http.ResponseWriter, r *http.Request) { q.send(w, r, finished) }
}
