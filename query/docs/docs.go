// Package docs serves the reference page of the API, rendered from its OpenAPI document, and the pages of docs/,
// rendered from Markdown by the program, so no built output can be out of date. A search in the browser covers both, by
// an index of their sections.
package docs

import (
	"embed"
	"sync"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/openapi"
)

// The page that renders the OpenAPI document and sends requests. It is plain HTML and JavaScript written for navlog,
// and loads nothing from elsewhere.
//
//go:embed docs.js search.js theme.js docs.css icon.svg
var files embed.FS

// Files returns the OpenAPI document, its reference page, and the pages of docs/. They are rendered once, and must not
// be changed.
func Files() []serve.File { return rendered() }

var rendered = sync.OnceValue(func() []serve.File {
	out := []serve.File{
		{Path: "/openapi.yaml", Kind: "application/yaml; charset=utf-8", Body: openapi.YAML()},
		{Path: "/openapi.json", Kind: "application/json; charset=utf-8", Body: openapi.JSON()},
	}
	out = append(out, pageFiles()...)
	const script = "text/javascript; charset=utf-8"
	for name, kind := range map[string]string{"docs.js": script, "theme.js": script, "search.js": script,
		"docs.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		body, err := files.ReadFile(name)
		must(err)
		out = append(out, serve.File{Path: "/docs/" + name, Kind: kind, Body: body})
	}
	return out
})
