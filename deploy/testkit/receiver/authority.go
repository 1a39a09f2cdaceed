package receiver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/navlog/navlog/schemas/certs/certstest"
)

const (
	caName    = "receiver-ca.pem"
	caKeyName = "receiver-ca-key.pem"
	// caLife is how long an authority is valid, and caRenew how long before its expiry a new one is created.
	caLife  = 2 * 365 * 24 * time.Hour
	caRenew = 60 * 24 * time.Hour
)

// authority signs the server's certificate. It is stored in two files: the certificate, for senders to trust, and the
// key, which only the owner of the files can read.
type authority struct {
	*certstest.CA
	file string // path of the certificate
}

// openAuthority reads the authority in dir, or creates one if there is none or if it expires soon. A damaged file is an
// error, not a reason to create another authority, because senders may trust the old one.
func openAuthority(dir string, now time.Time) (*authority, error) {
	a, err := readAuthority(dir)
	switch {
	case err == nil && now.Before(a.Certificate.NotAfter.Add(-caRenew)):
		return a, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the receiver's certificate authority in %s: %w; remove %s and %s to have a new one made", dir, err, caName, caKeyName)
	}
	return newAuthority(dir, now)
}

func readAuthority(dir string) (*authority, error) {
	a := &authority{CA: new(certstest.CA), file: filepath.Join(dir, caName)}
	certificate, err := readPEM(a.file, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	if a.Certificate, err = x509.ParseCertificate(certificate); err != nil {
		return nil, fmt.Errorf("%s: %w", caName, err)
	}
	key, err := readPEM(filepath.Join(dir, caKeyName), "EC PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	if a.Key, err = x509.ParseECPrivateKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyName, err)
	}
	if !a.Key.PublicKey.Equal(a.Certificate.PublicKey) {
		return nil, fmt.Errorf("%s does not belong to %s", caKeyName, caName)
	}
	return a, nil
}

func newAuthority(dir string, now time.Time) (*authority, error) {
	const doing = "make the receiver's certificate authority"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	ca, err := certstest.NewCA("navlog demo receiver authority", now, now.Add(caLife))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(ca.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	// The certificate is written last: without it, the next start creates both again.
	if err := writePEM(filepath.Join(dir, caKeyName), "EC PRIVATE KEY", keyDER, 0o600); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	file := filepath.Join(dir, caName)
	if err := writePEM(file, "CERTIFICATE", ca.Certificate.Raw, 0o644); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return &authority{ca, file}, nil
}

// serverCertificate creates the server's certificate. It exists in memory only: every start creates another one.
func (a *authority) serverCertificate() (tls.Certificate, error) {
	c, err := a.Issue("navlog demo receiver")
	c.Certificate = append(c.Certificate, a.Certificate.Raw)
	return c, err
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
