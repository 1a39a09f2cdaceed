package partner

import (
	"strings"
	"testing"

	"github.com/navlog/navlog/query/serve"
)

// White space around a URL is ignored, and invisible characters within it are errors.
func TestURLInBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"url":" https://a.example/hook\t\r\n\u00a0"}`:  "https://a.example/hook",
		`{"url":"https://a.example/hook%20"}`:            "https://a.example/hook%20",
		`{"url":"` + strings.Repeat("x", maxURL) + ` "}`: strings.Repeat("x", maxURL),
		`{"url":" \n"}`: "", `{"url":"https://a.example/\u200b"}`: "", `{"url":"\ufeffhttps://a.example/"}`: "",
		`{"url":"https://a.example/\u202e"}`: "",
	} {
		if got, err := parseWebhookBody([]byte(body)); got != want || (err == nil) != (want != "") {
			t.Errorf("%.60s: %q, %v", body, got, err)
		}
	}
}

func FuzzWebhookBody(f *testing.F) {
	for _, seed := range []string{`{"url":"https://example.com"}`, `{"URL":"x"}`, `[]`, `null`, `{"url":null}`,
		`{"url":"a"}x`, "{\"url\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		link, err := parseWebhookBody(body)
		if (err == nil) == (link == "") {
			t.Errorf("%q: %q, %v", body, link, err)
		}
		if err != nil {
			if f, ok := err.(*serve.Failure); !ok || f.Status != 400 {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}
