package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/navlog/navlog/schemas/certs"
)

// clockSkew allows for a peer's clock that is behind.
const clockSkew = time.Hour

// CA is an authority that signs the certificates of servers and clients.
type CA struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// NewCA creates an authority that is valid from now, with a tolerance for clocks, until a time.
func NewCA(name string, now, until time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              until,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the authority %s: %w", name, err)
	}
	return &CA{Certificate: certificate, Key: key}, nil
}

// Issue returns a certificate for servers on this machine (127.0.0.1, localhost) and for clients. It is valid as long
// as the authority.
func (a *CA) Issue(name string) (tls.Certificate, error) {
	return a.IssueUntil(name, a.Certificate.NotBefore, a.Certificate.NotAfter)
}

// IssueUntil is Issue with other dates.
func (a *CA) IssueUntil(name string, from, until time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// PEM returns the authority's certificate in PEM.
func (a *CA) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate.Raw}))
}

// PEM returns a certificate and its key in PEM.
func PEM(c tls.Certificate) (certs.Texts, error) {
	return certs.Pinned{Client: &c}.Texts()
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return new(big.Int).SetBytes(b[:])
}
