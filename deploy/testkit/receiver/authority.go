package receiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caName    = "receiver-ca.pem"
	caKeyName = "receiver-ca-key.pem"
	// caLife is how long an authority is valid, and caRenew how long before its expiry a new one is created.
	caLife  = 2 * 365 * 24 * time.Hour
	caRenew = 60 * 24 * time.Hour
	// clockSkew allows for a sender's clock that is behind.
	clockSkew = time.Hour
)

// authority signs the server's certificate. It is stored in two files: the certificate, for senders to trust, and the
// key, which only the owner of the files can read.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // path of the certificate
}

// openAuthority reads the authority in dir, or creates one if there is none or if it expires soon. A damaged file is an
// error, not a reason to create another authority, because senders may trust the old one.
func openAuthority(dir string, now time.Time) (*authority, error) {
	a, err := readAuthority(dir)
	switch {
	case err == nil && now.Before(a.certificate.NotAfter.Add(-caRenew)):
		return a, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the receiver's certificate authority in %s: %w; remove %s and %s to have a new one made", dir, err, caName, caKeyName)
	}
	return newAuthority(dir, now)
}

func readAuthority(dir string) (*authority, error) {
	a := &authority{file: filepath.Join(dir, caName)}
	certificate, err := readPEM(a.file, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(certificate); err != nil {
		return nil, fmt.Errorf("%s: %w", caName, err)
	}
	key, err := readPEM(filepath.Join(dir, caKeyName), "EC PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	if a.key, err = x509.ParseECPrivateKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyName, err)
	}
	if !a.key.PublicKey.Equal(a.certificate.PublicKey) {
		return nil, fmt.Errorf("%s does not belong to %s", caKeyName, caName)
	}
	return a, nil
}

func newAuthority(dir string, now time.Time) (*authority, error) {
	const doing = "make the receiver's certificate authority"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "navlog demo receiver authority"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	// The certificate is written last: without it, the next start creates both again.
	if err := writePEM(filepath.Join(dir, caKeyName), "EC PRIVATE KEY", keyDER, 0o600); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	file := filepath.Join(dir, caName)
	if err := writePEM(file, "CERTIFICATE", der, 0o644); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return &authority{certificate, key, file}, nil
}

// issue creates the server's certificate. It exists in memory only: every start creates another one.
func (a *authority) issue(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the receiver's certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "navlog demo receiver"},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     a.certificate.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the receiver's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return new(big.Int).SetBytes(b[:])
}

func readPEM(file, kind string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s", filepath.Base(file), kind)
	}
	return block.Bytes, nil
}

// writePEM replaces the file atomically, so that a reader never sees half of it.
func writePEM(file, kind string, der []byte, mode fs.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // removes nothing if all went well
	if err := errors.Join(
		temporary.Chmod(mode),
		pem.Encode(temporary, &pem.Block{Type: kind, Bytes: der}),
		temporary.Close(),
	); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
