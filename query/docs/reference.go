package docs

import (
	"bytes"
	"encoding/json"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/openapi"
)

// reference is the OpenAPI document with HTML in place of the Markdown of its descriptions, for the
// page that shows it. HTML in a description is left out, as in the pages of docs/.
func reference() []byte {
	var document any
	must(json.Unmarshal(openapi.JSON(), &document))
	describe(document, "")
	out, err := httpapi.Encode(document)
	must(err)
	return out
}

// examples hold responses, in which description is a field like any other.
const examples = "examples"

// properties have the names of fields as their keys, and one may be called description.
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
