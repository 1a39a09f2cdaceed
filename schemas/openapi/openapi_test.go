package openapi_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/schemas/openapi"
	"github.com/navlog/navlog/schemas/webhook"
)

// load parses the document and validates it and its examples.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	doc := load(t)
	for _, event := range []string{webhook.DepositReferral, webhook.WithdrawalReferral, webhook.Test} {
		if doc.Webhooks[event] == nil || doc.Webhooks[event].Post == nil {
			t.Errorf("there is no webhook %s", event)
		}
	}
	if len(doc.Webhooks) != 3 {
		t.Errorf("%d webhooks", len(doc.Webhooks))
	}
}

// TestEveryParameterIsBounded checks that a number has a minimum and a maximum, and a text a list of values or a
// maximum length.
func TestEveryParameterIsBounded(t *testing.T) {
	doc := load(t)
	var bounded func(s *openapi3.Schema) bool
	bounded = func(s *openapi3.Schema) bool {
		if len(s.AnyOf) > 0 {
			for _, one := range s.AnyOf {
				if !bounded(one.Value) {
					return false
				}
			}
			return true
		}
		if s.Type.Is("integer") {
			return s.Min != nil && s.Max != nil
		}
		return s.Type.Is("string") && (len(s.Enum) > 0 || s.MaxLength != nil)
	}
	for name, p := range doc.Components.Parameters {
		if !bounded(p.Value.Schema.Value) {
			t.Errorf("parameter %s has no bounds", name)
		}
		if p.Value.Description == "" {
			t.Errorf("parameter %s has no description", name)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, p := range op.Parameters {
				if p.Ref == "" {
					t.Errorf("%s %s: parameter %s is not one of the components that are checked here", method, path, p.Value.Name)
				}
			}
		}
	}
}

// TestEveryOperationListsItsErrors checks the errors of each operation, by its parameters and its path.
func TestEveryOperationListsItsErrors(t *testing.T) {
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			takes, headers := map[string]bool{}, map[string]bool{}
			for _, p := range op.Parameters {
				if p.Value.In == openapi3.ParameterInHeader {
					headers[p.Value.Name] = true
				} else {
					takes[p.Value.Name] = true
				}
			}
			api, explain := strings.HasPrefix(path, "/api/v1/"), path == "/api/v1/explain"
			partner := strings.HasPrefix(path, "/api/v1/partner/") || explain // for a partner's numbers
			resource := strings.HasPrefix(path, "/api/v1/users/") && strings.HasSuffix(path, "}") ||
				strings.Contains(path, "/vaults/{")
			limited := api || path == "/status" || strings.HasPrefix(path, "/.well-known/")
			// if there is no key to sign it with
			resource = resource || path == "/api/v1/partner/statement"
			// before the first block
			resource = resource || strings.HasSuffix(path, "/deliveries/{eventId}") || path == "/api/v1/block"
			resource = resource || path == "/api/v1/partner/router"                            // without a router
			resource = resource || strings.HasSuffix(path, "/rotate")                          // unless the operator allows it
			resource = resource || strings.Contains(path, "/certificates") && method == "POST" // the same
			want := map[int]bool{
				304: method == "GET" && path != "/api/v1/stream", // whose response always differs
				// without parameters, for a query string that cannot be parsed
				400: len(takes) > 0 || op.RequestBody != nil || api && method == "GET", 401: partner, 403: partner,
				404: resource || explain || method == "POST" && op.RequestBody == nil, 405: true,
				413: method == "POST", 415: op.RequestBody != nil,
				429: limited, 431: true, 500: true, 503: limited || path == "/readyz",
			}
			for status, listed := range want {
				if (op.Responses.Status(status) != nil) != listed {
					t.Errorf("%s %s: %d is listed: %v", method, path, status, !listed)
				}
			}
			if !headers["X-Request-Id"] || headers["If-None-Match"] != want[304] {
				t.Errorf("%s %s takes the headers %v", method, path, headers)
			}
		}
	}
}

// TestJSONIsTheSameDocument compares the JSON with the YAML, including the order.
func TestJSONIsTheSameDocument(t *testing.T) {
	var fromJSON, fromYAML any
	if err := json.Unmarshal(openapi.JSON(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(openapi.YAML(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	var again any
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, again) {
		t.Error("the JSON differs from the YAML")
	}
	if !bytes.HasPrefix(openapi.JSON(), []byte(`{"openapi":"3.1.0","info":{"title":"navlog"`)) {
		t.Errorf("the order is lost: %.80s", openapi.JSON())
	}
}
