package stack

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A metric is found with labels and without, and the largest of its series counts.
func TestMetrics(t *testing.T) {
	text := "# HELP blocks a b\n# TYPE blocks gauge\nblocks{chain=\"1\",of=\"a b\"} " +
		"12\nplain 3.5\nlag{n=\"1\"} NaN\nlag{n=\"2\"} 4\nlag{n=\"3\"} 2\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the request is for %s with Accept-Encoding %q", r.URL, r.Header.Get("Accept-Encoding"))
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	got, err := Metrics(t.Context(), server.URL)
	if want := map[string]float64{"blocks": 12, "plain": 3.5, "lag": 4}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	text = "blocks twelve\n"
	if _, err := Metrics(t.Context(), server.URL); err == nil {
		t.Error("a value that is not a number is accepted")
	}
	server.Close()
	if _, err := Metrics(t.Context(), server.URL); err == nil {
		t.Error("a program that does not respond has metrics")
	}
}
