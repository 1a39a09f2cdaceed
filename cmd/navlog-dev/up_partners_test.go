package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The next start replaces demo keys that rotations on the page revoked, and rejects keys of another database.
func TestRotatedDemoKeys(t *testing.T) {
	pool, err := registry.Open(t.Context(), registry.Config{URL: enginetest.Postgres(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := &wiring.Deps{Pool: pool}
	start := func(data string) (*up, error) {
		u := &up{cmd: upCmd{Data: data}, config: config.Config{SecretKey: partners.SealKey}}
		_, err := u.ensurePartners(t.Context(), d)
		return u, err
	}
	data := t.TempDir()
	first, err := start(data)
	if err != nil {
		t.Fatal(err)
	}
	demo := first.ready.Partners[1]
	for range 2 {
		if _, err := registry.RotateKey(t.Context(), pool, registry.Author{Name: "partner 2"}, demo.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it is replaced once
		again, err := start(data)
		if err != nil {
			t.Fatal(err)
		}
		replaced := again.ready.Partners[1]
		found, err := db.New(pool).PartnerByKey(t.Context(), registry.HashKey(replaced.APIKey))
		if err != nil || found.ID != demo.ID || replaced.APIKey == demo.APIKey ||
			replaced.SigningSecret != demo.SigningSecret {
			t.Errorf("the demo key belongs to partner %d, and is the old one: %t (%v)", found.ID, replaced.APIKey == demo.APIKey,
				err)
		}
		if again.ready.Partners[0].APIKey != first.ready.Partners[0].APIKey {
			t.Error("a live key is replaced")
		}
	}
	other := t.TempDir()
	text := `[{"id":1,"name":"Demo One","apiKey":"` + registry.NewAPIKey(true) + `"}]`
	if err := os.WriteFile(filepath.Join(other, "partners.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := start(other); err == nil || !strings.Contains(err.Error(), "does not know") {
		t.Errorf("a key of another database: %v", err)
	}
}
