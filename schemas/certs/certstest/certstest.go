// Package certstest creates authorities and certificates for tests, checks and the receiver of the demo.
package certstest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/certs"
)

// Authority is an authority of a test, with a certificate for 127.0.0.1 that servers and clients use.
type Authority struct {
	*CA
	t     testing.TB
	files certs.Files
	own   tls.Certificate
}

// New creates an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	ca, err := NewCA("an authority", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{CA: ca, t: t}
	a.own = a.Client("navlog")
	texts := a.texts(a.own)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	a.files = certs.Files{CA: write("ca.pem", a.PEM()), Cert: write("cert.pem", texts.Client),
		Key: write("key.pem", texts.Key)}
	return a
}

// Files returns the files that a client needs.
func (a *Authority) Files() certs.Files { return a.files }

// Client returns another certificate of this authority.
func (a *Authority) Client(name string) tls.Certificate {
	a.t.Helper()
	c, err := a.Issue(name)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// Texts returns the texts that a client needs to reach a server of this authority with a certificate.
func (a *Authority) Texts(client tls.Certificate) certs.Texts {
	a.t.Helper()
	texts := a.texts(client)
	texts.Authorities = a.PEM()
	return texts
}

func (a *Authority) texts(c tls.Certificate) certs.Texts {
	a.t.Helper()
	texts, err := PEM(c)
	if err != nil {
		a.t.Fatal(err)
	}
	return texts
}

// Server returns the configuration of a server that requires client certificates of this authority.
func (a *Authority) Server() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{a.own}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	}
}
