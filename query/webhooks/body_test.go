package webhooks

import (
	"testing"

	"github.com/navlog/navlog/query/httpapi"
)

func FuzzWebhookBody(f *testing.F) {
	for _, seed := range []string{`{"url":"https://example.com"}`, `{"URL":"x"}`, `[]`, `null`, `{"url":null}`, `{"url":"a"}x`, "{\"url\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		link, err := parseWebhookBody(body)
		if (err == nil) == (link == "") {
			t.Errorf("%q: %q, %v", body, link, err)
		}
		if err != nil {
			if f, ok := err.(*httpapi.Failure); !ok || f.Status != 400 {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}
