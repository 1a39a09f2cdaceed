package health

import (
	"encoding/json"
	"strings"
	"testing"
)

// The pages link to the URL without checking it again, so only http and https URLs with a host are valid.
func TestExplorerURLs(t *testing.T) {
	sound := Explorer{Tx: "https://explorer.example/tx/{tx}", Address: "http://[::1]:3000/?of={address}#top",
		Block: "https://b.example/{block}/"}
	for _, e := range []Explorer{{}, sound, {Block: sound.Block}} {
		if err := e.Validate(); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
	for template, want := range map[string]string{
		"javascript:alert('{tx}')":           "http or https URL",
		"ftp://explorer.example/{tx}":        "http or https URL",
		"//explorer.example/{tx}":            "http or https URL",
		"explorer.example/tx/{tx}":           "http or https URL",
		"https:///{tx}":                      "http or https URL",
		"https://:443/{tx}":                  "http or https URL",
		"https://a.example/\x7f{tx}":         "http or https URL",
		"https://me:sesame@a.example/{tx}":   "no user or password",
		"https://me@a.example/{tx}":          "no user or password",
		"https://a.example/":                 "{tx} once",
		"https://a.example/{tx}/{tx}":        "{tx} once",
		"https://a.example/{hash}":           "{tx} once",
		"https://a.example/{tx}?b={block}":   "no other placeholder",
		"https://a.example/{tx}}":            "no other placeholder",
		"https://{tx}.example/":              "after its host",
		"https://a.example:{tx}/":            "after its host",
		"https://a.example/{tx}" + longer:    "longer than 500 bytes",
		"https://a.example\\@b.example/{tx}": "http or https URL",
	} {
		err := Explorer{Tx: template}.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "http.explorer.tx ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", template, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("the error has the password: %v", err)
		}
	}
	err := Explorer{Tx: "x", Address: "y", Block: "z"}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not every mistake is reported: %v", err)
	}
}

var longer = strings.Repeat("x", maxExplorerURL)

func TestExplorerInStatus(t *testing.T) {
	for want, e := range map[string]Explorer{
		`null`: {},
		`{"tx":"https://a.example/{tx}","address":null,"block":null}`: {Tx: "https://a.example/{tx}"},
	} {
		if got, err := json.Marshal(e.public()); err != nil || string(got) != want {
			t.Errorf("%+v: %s, %v; want %s", e, got, err, want)
		}
	}
}
