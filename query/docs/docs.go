// Package docs is the page about the API, made of its OpenAPI document, and the pages of
// docs/, made of their Markdown when the program starts: there is no built output that
// could be older than they are. A search looks through both, in the browser, by an index
// of their sections.
package docs

import (
	"embed"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/openapi"
)

// The page that reads the OpenAPI document and sends requests. It is plain
// HTML and JavaScript of our own and loads nothing from elsewhere.
//
//go:embed docs.js search.js theme.js docs.css icon.svg
var files embed.FS

// Files are the OpenAPI document, the page about it, and the pages of docs/.
func Files() []httpapi.File {
	out := []httpapi.File{
		{Path: "/openapi.yaml", Kind: "application/yaml; charset=utf-8", Body: openapi.YAML()},
		{Path: "/openapi.json", Kind: "application/json; charset=utf-8", Body: openapi.JSON()},
	}
	out = append(out, pageFiles()...)
	page := func(path, name, kind string) {
		body, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is part of the binary
		}
		out = append(out, httpapi.File{Path: path, Kind: kind, Body: body})
	}
	page("/docs/docs.js", "docs.js", "text/javascript; charset=utf-8")
	page("/docs/theme.js", "theme.js", "text/javascript; charset=utf-8")
	page("/docs/search.js", "search.js", "text/javascript; charset=utf-8")
	page("/docs/docs.css", "docs.css", "text/css; charset=utf-8")
	page("/docs/icon.svg", "icon.svg", "image/svg+xml")
	return out
}
