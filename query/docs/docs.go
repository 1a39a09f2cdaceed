// Package docs serves the reference page of the API, rendered from its OpenAPI document, and the pages of docs/,
// rendered from Markdown by the program, so no built output can be out of date. A search in the browser covers both, by
// an index of their sections.
package docs

import (
	"bytes"
	"embed"
	"encoding/json"
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

// reference returns the OpenAPI document with its descriptions rendered from Markdown to HTML, for the reference
// page. HTML in a description is dropped, as in the pages of docs/.
func reference() []byte {
	var document any
	must(json.Unmarshal(openapi.JSON(), &document))
	describe(document, "")
	out, err := serve.Encode(document)
	must(err)
	return out
}

// examples contain responses, in which description is an ordinary field.
const examples = "examples"

// properties have field names as their keys, and a field may be called description.
const properties = "properties"

// describe renders the descriptions in a node of the document; under is its key.
func describe(node any, under string) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			describe(item, under)
		}
	case map[string]any:
		for key, value := range node {
			text, described := value.(string)
			switch {
			case key == examples && under != properties || key == "example":
			case described && key == "description" && under != properties:
				var b bytes.Buffer
				must(markdown.Convert([]byte(text), &b))
				node[key] = b.String()
			default:
				describe(value, key)
			}
		}
	}
}
