package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// TestCertificatesThatAPartnerSets: what a partner sets at the API is what dispatch connects with. The receiver accepts
// only connections with a client certificate of its authority, which the system does not know.
func TestCertificatesThatAPartnerSets(t *testing.T) {
	t.Parallel()
	f := fleet.New(t, fleet.Options{Partners: 1, SlotsInEpoch: 1})

	ca := certstest.New(t)
	var mu sync.Mutex
	clients := map[string]int{} // requests, by the subject of the client certificate
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.TLS.PeerCertificates[0].Subject.CommonName]++
	}))
	server.TLS = ca.Server()
	server.StartTLS()
	t.Cleanup(server.Close)

	serve := f.Launch("serve", "serve", "NAVLOG_HTTP_PARTNER_ROTATION=true")
	post := func(path string, fields map[string]string) error {
		body, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serve.API+"/api/v1/partner/webhooks"+path,
			bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("x-api-key", f.Partners[0].APIKey)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s is answered with %d %s: %w", path, response.StatusCode, answer, err)
		}
		return nil
	}
	f.Until(func() error { return post("", map[string]string{"url": server.URL + "/hook"}) })
	f.Start("ingest", "dispatch")
	for _, name := range []string{"first", "renewed"} {
		texts := ca.Texts(ca.Client(name))
		if err := post("/certificates",
			map[string]string{"authorities": texts.Authorities, "certificate": texts.Client, "key": texts.Key}); err != nil {
			t.Fatal(err)
		}
		f.Until(func() error {
			mu.Lock()
			seen := maps.Clone(clients)
			mu.Unlock()
			if seen[name] > 0 {
				return nil
			}
			f.Steps(1)
			return fmt.Errorf("no delivery with the certificate of %q, but %v", name, seen)
		})
	}
}
