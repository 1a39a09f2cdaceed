package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// ensureSecretKey reads a 32-byte key, or generates it: the key that encrypts signing secrets, or the one that signs
// statements.
func ensureSecretKey(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the key in %s: %w", file, err)
	}
	random := make([]byte, 32)
	rand.Read(random)
	key := base64.StdEncoding.EncodeToString(random)
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the key in %s: %w", file, err)
	}
	return key, nil
}

var demoNames = []string{"Demo One", "Demo Two"}

// ensurePartners finds the demo partners of the last run, or creates them.
func (u *up) ensurePartners(ctx context.Context, d *wiring.Deps) (created bool, err error) {
	file := filepath.Join(u.cmd.Data, "partners.json")
	err = readJSON(file, &u.ready.Partners)
	if err == nil {
		return false, u.checkPartners(ctx, d, file)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	sealer, err := registry.NewSealer(u.config.SecretKey)
	if err != nil {
		return false, err
	}
	for _, name := range demoNames {
		p, err := registry.CreatePartner(ctx, d.Pool, "navlog-dev up", sealer, 0, name, true)
		if err != nil {
			return false, err
		}
		u.ready.Partners = append(u.ready.Partners, p)
	}
	return true, writeJSON(file, u.ready.Partners)
}

// checkPartners rejects keys that belong to another database, and replaces those that rotations on the page have
// revoked.
func (u *up) checkPartners(ctx context.Context, d *wiring.Deps, file string) error {
	q, revoked := db.New(d.Pool), false
	for i, p := range u.ready.Partners {
		hash := registry.HashKey(p.APIKey)
		owner, err := q.OwnerOfKey(ctx, hash)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && owner != p.ID {
			return fmt.Errorf("%s names partner %d, which this PostgreSQL does not know: remove that file, or use the "+
				"database that it belongs to", file, p.ID)
		}
		if err == nil {
			_, err = q.PartnerByKey(ctx, hash)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			revoked = true
			p, err = registry.RotateKey(ctx, d.Pool, registry.Author{Name: "navlog-dev up"}, p.ID, true)
			u.ready.Partners[i].APIKey = p.APIKey
		}
		if err != nil {
			return fmt.Errorf("look up demo partner %d: %w", u.ready.Partners[i].ID, err)
		}
	}
	if revoked {
		return writeJSON(file, u.ready.Partners)
	}
	return nil
}

// registerWebhooks sets the URL of the demo partners that have none, or that of an earlier run's receiver, to the
// receiver's URL. It uses the API, as a partner would.
func (u *up) registerWebhooks(ctx context.Context, d *wiring.Deps) error {
	file := filepath.Join(u.cmd.Data, "receiver.json")
	var earlier []string
	if err := readJSON(file, &earlier); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, p := range u.ready.Partners {
		target := fmt.Sprintf("%s/partners/%d", u.ready.Receiver, p.ID)
		known, err := db.New(d.Pool).GetPartner(ctx, p.ID)
		if err != nil {
			return fmt.Errorf("read demo partner %d: %w", p.ID, err)
		}
		of := func(base string) bool { return strings.HasPrefix(*known.Url, base+"/") }
		if known.Url != nil && (*known.Url == target || !slices.ContainsFunc(earlier, of)) {
			continue
		}
		if err := registerWebhook(ctx, u.ready.API, p.APIKey, target); err != nil {
			return fmt.Errorf("register the webhook of demo partner %d: %w", p.ID, err)
		}
	}
	return writeJSON(file, []string{u.ready.Receiver})
}

func registerWebhook(ctx context.Context, address, key, target string) error {
	public, err := api.New(api.Config{URL: address, Key: key, Within: 10 * time.Second})
	if err != nil {
		return err
	}
	_, err = api.Text(public.Post(ctx, "/api/v1/partner/webhooks", map[string]string{"url": target}))
	return err
}
