package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry"
)

// An operator sets, shows, renews and removes the certificates for a partner's URL. No output has a key.
func TestPartnerCertificates(t *testing.T) {
	c := newCommands(t)
	const url = "https://acme.example/hook"
	if _, err := c.run("partner", "create", "Acme", "--id", "7"); err != nil {
		t.Fatal(err)
	}
	ca := certstest.New(t)
	files := ca.Files()
	set := []string{"partner", "certificates", "set", "7", "--authorities", files.CA, "--certificate", files.Cert, "--key",
		files.Key}
	if _, err := c.run(set...); err == nil || !strings.Contains(err.Error(), "has no webhook URL: name the URL") {
		t.Errorf("without a URL: %v", err)
	}
	pool, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	// Before the partner registers the URL, which is stored in its canonical form.
	if out, err := c.run(append(set, "--url", "https://ACME.example:443/hook")...); err != nil ||
		!strings.Contains(out, "not the partner's URL") {
		t.Fatalf("before the URL is the partner's: %q, %v", out, err)
	}
	if err := partners.Register(t.Context(), pool, 7, url); err != nil {
		t.Fatal(err)
	}
	var rows []certificatesRow
	c.json(&rows, "partner", "certificates", "show", "7")
	leaf := certificateOf(t, files)
	if len(rows) != 1 || rows[0].URL != url || !rows[0].Used || len(rows[0].Authorities) != 1 || len(rows[0].Client) != 1 {
		t.Fatalf("show: %+v", rows)
	}
	if got, want := rows[0].Client[0],
		(certificateRow{"CN=navlog", "CN=an authority", leaf, ca.Certificate.NotAfter.UTC()}); got != want {
		t.Errorf("the client certificate is %+v, want %+v", got, want)
	}
	out, err := c.run("partner", "certificates", "show", "7")
	if err != nil || !strings.Contains(out, leaf) || !strings.Contains(out, "dispatch uses them within a second") ||
		strings.Contains(out, "PRIVATE") {
		t.Errorf("show: %q, %v", out, err)
	}

	e := &examination{config: mustLoad(t, c.file)}
	e.certificates(t.Context(), pool)
	if len(e.findings) != 2 || e.findings[0].Verdict != warning ||
		!strings.Contains(e.findings[0].Found, "for the webhooks of partner 7 expires at") {
		t.Errorf("for certificates that expire within an hour, the doctor finds %+v", e.findings)
	}

	if out, err = c.run("partner", "certificates", "remove", "7", "--only", "authorities"); err != nil ||
		strings.Contains(out, "\n  authority") || !strings.Contains(out, leaf) {
		t.Errorf("without authorities: %q, %v", out, err)
	}
	if out, err = c.run("partner", "certificates", "remove", "7"); err != nil ||
		!strings.Contains(out, "no certificates for "+url+" any more") {
		t.Errorf("remove: %q, %v", out, err)
	}
	if out, err = c.run("partner", "certificates", "show", "7"); err != nil ||
		!strings.Contains(out, "the system's authorities are trusted") {
		t.Errorf("show without any: %q, %v", out, err)
	}
	if out, err = c.run("audit", "--partner", "7"); err != nil || strings.Count(out, "partner certificates") != 3 ||
		strings.Contains(out, "PRIVATE") {
		t.Errorf("audit: %q, %v", out, err)
	}

	next, err := certstest.NewCA("next year", time.Now(), time.Now().Add(365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(long, []byte(next.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = c.run("partner", "certificates", "set", "7", "--authorities", long); err != nil ||
		!strings.Contains(out, "next year") {
		t.Errorf("set: %q, %v", out, err)
	}
	e = &examination{config: mustLoad(t, c.file)}
	if e.certificates(t.Context(), pool); len(e.findings) != 0 {
		t.Errorf("for a certificate that is valid for a year, the doctor finds %+v", e.findings)
	}
}

// Each mistake is rejected with one sentence that names the file or the flag.
func TestPartnerCertificateMistakes(t *testing.T) {
	c := newCommands(t)
	if _, err := c.run("partner", "create", "Acme", "--id", "7"); err != nil {
		t.Fatal(err)
	}
	files, other := certstest.New(t).Files(), certstest.New(t).Files()
	empty, large := filepath.Join(t.TempDir(), "empty.pem"), filepath.Join(t.TempDir(), "large.pem")
	for file, text := range map[string]string{empty: "", large: strings.Repeat("#", certs.MaxPEM+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{
		"give --authorities, or --certificate with --key": {"set", "7"},
		"the client certificate has no private key":       {"set", "7", "--certificate", files.Cert},
		"the private key has no client certificate":       {"set", "7", "--key", files.Key},
		"does not belong to the client certificate": {"set", "7", "--certificate", files.Cert, "--key",
			other.Key},
		"a private key where only certificates belong":     {"set", "7", "--authorities", files.Key},
		"a certificate where only the private key belongs": {"set", "7", "--certificate", files.Cert, "--key", files.Cert},
		"it has no CA flag":                     {"set", "7", "--authorities", files.Cert},
		"--authorities: " + empty + " is empty": {"set", "7", "--authorities", empty},
		"longer than 65536 bytes":               {"set", "7", "--authorities", large},
		"no such file":                          {"set", "7", "--authorities", empty + "2"},
		"--url: the URL must begin with https://": {"set", "7", "--authorities", files.CA, "--url",
			"http://acme.example"},
		"there is no partner 9":                                 {"set", "9", "--authorities", files.CA},
		"there is no partner 9: `navlog":                        {"show", "9"},
		"there is no partner 9: `navlog partner list`":          {"remove", "9"},
		"partner 7 has no such certificates":                    {"remove", "7", "--url", "https://acme.example/"},
		"--only must be one of \"\",\"authorities\",\"client\"": {"remove", "7", "--only", "key"},
	} {
		_, err := c.run(append([]string{"partner", "certificates"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("navlog partner certificates %s: %v, want %q", strings.Join(args, " "), err, want)
		}
	}
}

// certificateOf returns the fingerprint of a client's certificate.
func certificateOf(t *testing.T, files certs.Files) string {
	t.Helper()
	tls, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(certs.Fingerprint(tls.Certificates[0].Leaf))
}

func mustLoad(t *testing.T, file string) config.Config {
	t.Helper()
	c, err := config.Load(file, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
