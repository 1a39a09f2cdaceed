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
	page := func(path, name, kind string) {
		body, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file is part of the binary
		}
		out = append(out, serve.File{Path: path, Kind: kind, Body: body})
	}
	page("/docs/docs.js", "docs.js", "text/javascript; charset=utf-8")
	page("/docs/theme.js", "theme.js", "text/javascript; charset=utf-8")
	page("/docs/search.js", "search.js", "text/javascript; charset=utf-8")
	page("/docs/docs.css", "docs.css", "text/css; charset=utf-8")
	page("/docs/icon.svg", "icon.svg", "image/svg+xml")
	return out
})
