// Package certstest creates authorities and certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/certs"
)

// Authority is an authority of a test, with a certificate for 127.0.0.1 that servers and clients use.
type Authority struct {
	files certs.Files
	roots *x509.CertPool
	own   tls.Certificate
}

// New creates an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "navlog"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	a := &Authority{roots: x509.NewCertPool(), own: tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key}}
	parsed, err := x509.ParseCertificate(rootDER)
	must(err)
	a.roots.AddCert(parsed)
	a.files = certs.Files{CA: write("ca.pem", "CERTIFICATE", rootDER), Cert: write("cert.pem", "CERTIFICATE", leafDER), Key: write("key.pem", "PRIVATE KEY", keyDER)}
	return a
}

// Files returns the files that a client needs.
func (a *Authority) Files() certs.Files { return a.files }

// Server returns the configuration of a server that requires client certificates of this authority.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.own}, ClientCAs: a.roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}
