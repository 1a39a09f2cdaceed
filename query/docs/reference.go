package docs

import (
	"bytes"
	"encoding/json"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/openapi"
)

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
