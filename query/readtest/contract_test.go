package readtest

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestIgnoredKeywords: a keyword that the validator would ignore is an error, wherever a schema has it.
func TestIgnoredKeywords(t *testing.T) {
	for schema, fault := range map[string]string{
		`{type: array, items: {const: 1}}`:                          "",
		`{type: array, items: {contains: {type: string}}}`:          "/properties/a/items: responses are not checked against contains",
		`{anyOf: [{if: {type: string}, then: {minLength: 1}}]}`:     "/properties/a/anyOf/0: responses are not checked against if",
		`{type: object, patternProperties: {'^a': {type: string}}}`: "/properties/a: responses are not checked against patternProperties",
		`true`: "/properties/a: json: cannot unmarshal bool",
	} {
		doc, err := openapi3.NewLoader().LoadFromData([]byte("{openapi: 3.1.0, info: {title: a, version: a}, paths: {}, " +
			"components: {schemas: {S: {type: object, properties: {a: " + schema + "}}}}}"))
		if err != nil {
			t.Fatal(err)
		}
		err = withoutJSONSchema(doc)
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v, want %q", schema, err, fault)
		}
	}
}
