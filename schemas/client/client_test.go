package client_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/openapi"
)

// The example reads all users as of the block of the first page, page by page, and shows a rejected key.
func Example() {
	navlog := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/api/v1/users":
			w.Header().Set("X-Indexed-Block", "57")
			fmt.Fprint(w,
				`{"ok":true,"data":[{"address":"0x11","totalDeposited":"170"}],"meta":{"page":1,"total":2,"hasNextPage":true}}`)
		case "/api/v1/users?asOfBlock=57&page=2":
			w.Header().Set("X-Indexed-Block", "57")
			fmt.Fprint(w,
				`{"ok":true,"data":[{"address":"0x22","totalDeposited":"250"}],"meta":{"page":2,"total":2,"hasNextPage":false}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"ok":false,"error":{"code":"UNAUTHORIZED","message":"%s is not a key.","requestId":"1"}}`,
				r.Header.Get("x-api-key"))
		}
	}))
	defer navlog.Close()

	ctx := (&http.Request{}).Context()
	api, err := client.New(navlog.URL, "nk_test_mine", nil)
	if err != nil {
		log.Fatal(err)
	}
	parameters := url.Values{}
	for more := true; more; {
		users, err := client.Read[[]client.User](api.Get(ctx, "/api/v1/users", parameters))
		if err != nil {
			log.Fatal(err)
		}
		for _, user := range users.Data {
			fmt.Println(user.Address, user.TotalDeposited)
		}
		parameters.Set("asOfBlock", users.Header.Get("X-Indexed-Block"))
		parameters.Set("page", strconv.Itoa(users.Meta.Page+1))
		more = users.Meta.HasNextPage
	}
	_, err = client.Read[client.PartnerStats](api.Get(ctx, "/api/v1/partner/stats", nil))
	fmt.Println(err)
	// Output:
	// 0x11 170
	// 0x22 250
	// 401 UNAUTHORIZED: nk_test_mine is not a key.
}

// TestTypes checks that each field of a type is a property of the schema that describes it, and that it is a pointer if
// the property may be null or absent.
func TestTypes(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]reflect.Type{
		"Token": reflect.TypeFor[client.Token](), "Vault": reflect.TypeFor[client.Vault](),
		"User": reflect.TypeFor[client.User](), "PartnerStats": reflect.TypeFor[client.PartnerStats](),
		"ExplainedEvent": reflect.TypeFor[client.ExplainedEvent](),
		"Status":         reflect.TypeFor[client.Status](), "EndpointUse": reflect.TypeFor[client.EndpointUse](),
		"VaultStatus": reflect.TypeFor[client.VaultStatus](),
	} {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("the API has no schema %s", name)
			continue
		}
		properties, required := map[string]*openapi3.SchemaRef{}, map[string]bool{}
		collect(schema.Value, properties, required)
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			property := properties[field]
			if property == nil {
				t.Errorf("%s has no property %s", name, field)
				continue
			}
			if optional := !required[field] ||
				nullable(property.Value); optional != (typ.Field(i).Type.Kind() == reflect.Pointer) {
				t.Errorf("%s.%s may be null or absent: %v, and is a %s", name, field, optional, typ.Field(i).Type)
			}
		}
	}
}

// TestEnvelopes checks that Meta has the fields of every list, and Error those of every error: otherwise a program
// could not request the next page of some list.
func TestEnvelopes(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		t.Fatal(err)
	}
	for part, typ := range map[string]reflect.Type{"meta": reflect.TypeFor[client.Meta](),
		"error": reflect.TypeFor[client.Error]()} {
		want := map[string]bool{}
		for _, schema := range doc.Components.Schemas {
			if envelope := schema.Value.Properties[part]; schema.Value.Properties["ok"] != nil && envelope != nil {
				for name := range envelope.Value.Properties {
					want[name] = true
				}
			}
		}
		got := map[string]bool{}
		for i := range typ.NumField() {
			if name := typ.Field(i).Tag.Get("json"); name != "-" {
				got[name] = true
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has the fields %v, and the API has %v", typ, got, want)
		}
	}
}

// TestCursors checks that the parameter for the next page is read as each list sends it, and that errors have their
// header.
func TestCursors(t *testing.T) {
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(code int, text string) (client.Answer[[]any], error) {
		status, body = code, text
		return client.Read[[]any](api.Get(t.Context(), "/api/v1/events", nil))
	}
	for text, want := range map[string]client.Meta{
		`{"pageSize":2,"next":"5AcDAA","hasNextPage":true}`: {PageSize: 2, Next: "5AcDAA", HasNextPage: true},
		`{"pageSize":2,"next":null,"hasNextPage":false}`:    {PageSize: 2},
		`{"next":9007199254740993,"hasMore":true}`:          {Next: "9007199254740993", HasMore: true},
	} {
		if answer, err := read(http.StatusOK, `{"ok":true,"data":[],"meta":`+text+`}`); err != nil || answer.Meta != want {
			t.Errorf("%s is read as %+v, %v", text, answer.Meta, err)
		}
	}
	if answer, err := read(http.StatusOK, `{"ok":true,"data":[],"meta":{"next":{}}}`); err == nil {
		t.Errorf("an object is read as the cursor %q", answer.Meta.Next)
	}
	_, err = read(http.StatusTooManyRequests, `{"ok":false,"error":{"code":"RATE_LIMITED","traceId":"0af7"}}`)
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.TraceID != "0af7" ||
		refused.Header.Get("Retry-After") != "7" {
		t.Errorf("the rejection is read as %#v", err)
	}
}

func collect(s *openapi3.Schema, properties map[string]*openapi3.SchemaRef, required map[string]bool) {
	for name, p := range s.Properties {
		properties[name] = p
	}
	for _, name := range s.Required {
		required[name] = true
	}
	for _, part := range s.AllOf {
		collect(part.Value, properties, required)
	}
}

func nullable(s *openapi3.Schema) bool {
	if s.Type.Includes("null") {
		return true
	}
	for _, one := range append(s.OneOf, s.AnyOf...) {
		if nullable(one.Value) {
			return true
		}
	}
	return false
}

// TestEverySuccessIsRead checks that Read takes each successful status of the document, such as 202 for a test event.
func TestEverySuccessIsRead(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		t.Fatal(err)
	}
	read := map[int]bool{}
	for path, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for text, response := range op.Responses.Map() {
				status, err := strconv.Atoi(text)
				if err != nil || status >= 300 || response.Value.Content.Get("application/json") == nil || read[status] {
					continue
				}
				read[status] = true
				answer, err := client.Read[struct{ EventID string }](&http.Response{
					StatusCode: status, Body: io.NopCloser(strings.NewReader(`{"ok":true,"data":{"eventId":"1"}}`)),
					Request: &http.Request{URL: &url.URL{Path: path}},
				}, nil)
				if err != nil || answer.Data.EventID != "1" {
					t.Errorf("%s with %d: %v, %v", path, status, answer.Data, err)
				}
			}
		}
	}
	if len(read) < 2 {
		t.Errorf("only %v are successful", read)
	}
}

// TestPostWithoutBody checks that nil is no body: some paths take none, or an object, but never the value null.
func TestPostWithoutBody(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Header.Get("Content-Type") + " " + string(body)
		fmt.Fprint(w, `{"ok":true,"data":{}}`)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, value := range map[string]any{" ": nil, "application/json {}": struct{}{}} {
		if _, err := client.Read[struct{}](api.Post(t.Context(), "/api/v1/partner/webhooks/secret/rotate",
			value)); err != nil || got != want {
			t.Errorf("%v is sent as %q: %v", value, got, err)
		}
	}
}

// TestForeignResponses checks that a response that is not navlog's is an error that reports this, and that an invalid
// address is an error too.
func TestForeignResponses(t *testing.T) {
	for body, status := range map[string]int{"<html>": http.StatusOK, "<html>404": http.StatusNotFound,
		`{"data":[]}`: http.StatusBadGateway, `{"data":7}`: http.StatusOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		api, err := client.New(server.URL, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Read[[]client.Vault](api.Get(t.Context(), "/api/v1/vaults", nil))
		if apiError := (*client.Error)(nil); err == nil || errors.As(err, &apiError) ||
			!strings.Contains(err.Error(), "/api/v1/vaults") {
			t.Errorf("%q with %d: %v", body, status, err)
		}
		server.Close()
	}
	for _, address := range []string{"", "navlog.example", "ftp://navlog.example", "http://", "http://a b"} {
		if _, err := client.New(address, "", nil); err == nil {
			t.Errorf("%q is accepted as an address", address)
		}
	}
}
