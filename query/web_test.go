package query

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/navlog/navlog/query/web"
)

// maxPages is the maximum number of compressed bytes that a visitor loads.
const maxPages = 150_000

// runsText matches code that runs text, which the policy forbids to libraries and pages.
var runsText = regexp.MustCompile(`\beval\(|new Function\(|document\.write|insertAdjacentHTML`)

// TestPagesKeepToTheirPolicy loads the page as a browser does: it is served at each of its paths, under default-src
// 'self' only, needs nothing that the policy blocks, and is small.
func TestPagesKeepToTheirPolicy(t *testing.T) {
	w := newWorld(t)
	transferred := 0
	load := func(path, cached string) string {
		t.Helper()
		r := w.Do("GET", path, nil, "Accept", "text/html,*/*;q=0.8", "Accept-Encoding", "gzip")
		if r.Code != 200 {
			t.Fatalf("%s: %d", path, r.Code)
		}
		policy := r.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'self'; ") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		same(t, "Cache-Control of "+path, r.Header().Get("Cache-Control"), cached)
		transferred += r.Body.Len()
		return w.Do("GET", path, nil, "Accept", "text/html").Body.String()
	}
	page := load("/", "public, no-cache")
	for _, path := range web.Paths {
		same(t, path, w.Do("GET",
			strings.NewReplacer("{address}", vaultA.Hex(), "{hash}", tx(13).Hex(), "{eventId}", uuid.Nil.String()).Replace(path),
			nil, "Accept", "text/html").Body.String(), page)
	}
	references := loadedBy(t, []byte(page))
	if len(references) != 4 {
		t.Errorf("the page loads %v, want an icon, a style sheet and two scripts", references)
	}
	for _, reference := range references {
		at, err := url.Parse(reference)
		if err != nil || at.IsAbs() || at.Host != "" || !strings.HasPrefix(at.Path, "/assets/") {
			t.Errorf("the page loads %q from elsewhere", reference)
			continue
		}
		body := load(reference, "public, max-age=31536000, immutable")
		if m := cssReference.FindString(body); m != "" && strings.HasSuffix(reference, ".css") {
			t.Errorf("%s contains %s", reference, m)
		}
		if m := runsText.FindString(body); m != "" && strings.HasSuffix(reference, ".js") {
			t.Errorf("%s contains %s", reference, m)
		}
	}
	if transferred > maxPages {
		t.Errorf("the pages are %d bytes compressed, want at most %d", transferred, maxPages)
	}
}

// TestStatusIsAPageForBrowsers: /status is a page for browsers and JSON for all other clients, and Vary names the
// header.
func TestStatusIsAPageForBrowsers(t *testing.T) {
	w := newFixture(t)
	for accept, html := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/html;q=0": false,
		"text/html;q=0.0, */*": false, "text/html;q=rubbish": false,
		"text/html": true, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/json, TEXT/HTML;q=0.5": true,
	} {
		r := w.Do("GET", "/status", nil, "Accept", accept)
		kind := r.Header().Get("Content-Type")
		if r.Code != 200 || strings.HasPrefix(kind, "text/html") != html ||
			r.Header().Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("Accept: %q: %d, %s, Vary: %s", accept, r.Code, kind, r.Header().Get("Vary"))
		}
	}
	same(t, "Vary of a path without a page", w.Do("GET", "/healthz", nil).Header().Get("Vary"), "Accept-Encoding")
}

// TestOtherPathsAreErrorPages: at an unknown path a browser gets an error page with the status 404, and every other
// client gets JSON. Paths of the API are JSON for both.
func TestOtherPathsAreErrorPages(t *testing.T) {
	w := newFixture(t)
	page := w.Do("GET", "/", nil, "Accept", "text/html").Body.String()
	for _, path := range []string{"/nonsense", "/vault", "/vault/", "/vault/a/b", "/users/", "/user", "/index.html",
		"/assets/", "/assets/main.js",
		"/dist/index.html", "/docs/nonsense", "/favicon.ico", "/apiary"} {
		r := w.Do("GET", path, nil, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		if r.Code != 404 || r.Body.String() != page || !strings.HasPrefix(r.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d, %s, %.80s", path, r.Code, r.Header().Get("Content-Type"), r.Body)
		}
		same(t, path+", Cache-Control", r.Header().Get("Cache-Control"), "no-store")
		same(t, path+", Vary", r.Header().Get("Vary"), "Accept, Accept-Encoding")
		same(t, path+", HEAD", w.Do("HEAD", path, nil, "Accept", "text/html").Code, 404)
		for _, accept := range []string{"", "*/*", "application/json", "image/*"} {
			w.get(path, "Accept", accept).Failed(t, 404, "NOT_FOUND")
		}
	}
	for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v1/nonsense", "/api/v1/partner/nonsense"} {
		w.get(path, "Accept", "text/html").Failed(t, 404, "NOT_FOUND")
	}
	w.Do("POST", "/nonsense", nil, "Accept", "text/html").Failed(t, 404, "NOT_FOUND")
	w.get("/api/v1/vaults", "Accept", "text/html").Data(t)
	same(t, "POST /", w.Do("POST", "/", nil).Code, 405)
}
