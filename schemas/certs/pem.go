package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/navlog/navlog/schemas/printable"
)

// Bounds of stored certificates. They are read again after each change, and every connection sends the chain.
const (
	MaxPEM         = 64 << 10 // bytes of one text
	MaxAuthorities = 32
	MaxChain       = 10 // a client certificate and its intermediate authorities
	minRSA         = 2048
	maxRSA         = 8192 // the longest that crypto/tls verifies
	// maxKey is the maximum length of a decoded private key in bytes: one of maxRSA bits has 4.7 kB. Reading a key takes
	// time that grows with the square of its length, more than a second for MaxPEM.
	maxKey  = 8 << 10
	maxName = 1000 // bytes of a subject or issuer that are shown
)

// Texts are the certificates for one receiver, in PEM. An empty text means that there is none.
type Texts struct {
	Authorities string
	Client      string // the client certificate, followed by intermediate authorities
	Key         string // the private key of the client certificate
}

// Pinned are the parsed certificates for one receiver.
type Pinned struct {
	Authorities []*x509.Certificate // trusted instead of those of the system; empty: those of the system
	Client      *tls.Certificate    // nil: none
}

// Parse returns the certificates of the texts. The error is one sentence, and never repeats the key.
// It does not look at dates (Current).
func (t Texts) Parse() (Pinned, error) {
	var p Pinned
	var err error
	if t.Authorities != "" {
		if p.Authorities, err = parseAuthorities(t.Authorities); err != nil {
			return Pinned{}, fmt.Errorf("the authorities: %w", err)
		}
	}
	if t.Client == "" && t.Key == "" {
		return p, nil
	}
	if p.Client, err = parseClient(t.Client, t.Key); err != nil {
		return Pinned{}, err
	}
	return p, nil
}

// ParsePublic is Parse without the private key.
func ParsePublic(authorities, client string) (Pinned, error) {
	p, err := Texts{Authorities: authorities}.Parse()
	if err != nil || client == "" {
		return p, err
	}
	chain, err := parseCertificates(client, MaxChain)
	if err != nil {
		return Pinned{}, fmt.Errorf("the client certificate: %w", err)
	}
	p.Client = withChain(chain)
	return p, nil
}

// Texts returns the certificates in PEM, without anything else that the parsed texts held.
func (p Pinned) Texts() (Texts, error) {
	var t Texts
	for _, c := range p.Authorities {
		t.Authorities += encode("CERTIFICATE", c.Raw)
	}
	if p.Client == nil {
		return t, nil
	}
	for _, der := range p.Client.Certificate {
		t.Client += encode("CERTIFICATE", der)
	}
	key, err := x509.MarshalPKCS8PrivateKey(p.Client.PrivateKey)
	if err != nil {
		return Texts{}, fmt.Errorf("encode the private key: %w", err)
	}
	t.Key = encode("PRIVATE KEY", key)
	return t, nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Pool returns the authorities as a pool, or otherwise if there are none.
func (p Pinned) Pool(otherwise *x509.CertPool) *x509.CertPool {
	if len(p.Authorities) == 0 {
		return otherwise
	}
	pool := x509.NewCertPool()
	for _, c := range p.Authorities {
		pool.AddCert(c)
	}
	return pool
}

// ClientChain returns the client certificate and its intermediate authorities.
func (p Pinned) ClientChain() []*x509.Certificate {
	if p.Client == nil {
		return nil
	}
	var chain []*x509.Certificate
	for _, der := range p.Client.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil { // Parse has parsed it before
			chain = append(chain, c)
		}
	}
	return chain
}

// Expiry returns when the first of the certificates expires; zero if there are none.
func Expiry(certificates []*x509.Certificate) (first time.Time) {
	for _, c := range certificates {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// DateError reports a certificate that is not valid at a time.
type DateError struct {
	Certificate *x509.Certificate
	Expired     bool // otherwise it is not valid yet
}

func (e *DateError) Error() string {
	if e.Expired {
		return fmt.Sprintf("the certificate of %s expired at %s", Name(e.Certificate),
			e.Certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the certificate of %s is not valid before %s", Name(e.Certificate),
		e.Certificate.NotBefore.UTC().Format(time.RFC3339))
}

// Current returns a *DateError about the first certificate that is not valid at a time.
func Current(certificates []*x509.Certificate, at time.Time) error {
	for _, c := range certificates {
		if expired := at.After(c.NotAfter); expired || at.Before(c.NotBefore) {
			return &DateError{c, expired}
		}
	}
	return nil
}

// Description is what people read about a certificate.
type Description struct {
	Subject, Issuer     string // of at most 1,000 bytes, without control characters
	Fingerprint         string // SHA-256 in hex
	NotBefore, NotAfter time.Time
}

// Describe returns the descriptions of certificates, which never have anything of a key.
func Describe(certificates []*x509.Certificate) []Description {
	described := make([]Description, len(certificates))
	for i, c := range certificates {
		described[i] = Description{
			printable.Text(c.Subject.String(), maxName), printable.Text(c.Issuer.String(), maxName),
			hex.EncodeToString(Fingerprint(c)), c.NotBefore.UTC(), c.NotAfter.UTC(),
		}
	}
	return described
}

// Name returns the subject of a certificate for messages.
func Name(c *x509.Certificate) string {
	if name := c.Subject.String(); name != "" {
		return fmt.Sprintf("%q", name)
	}
	return "serial number " + c.SerialNumber.Text(16)
}

// Fingerprint returns the SHA-256 of a certificate.
func Fingerprint(c *x509.Certificate) []byte {
	sum := sha256.Sum256(c.Raw)
	return sum[:]
}

func parseAuthorities(text string) ([]*x509.Certificate, error) {
	found, err := parseCertificates(text, MaxAuthorities)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if !c.BasicConstraintsValid || !c.IsCA {
			return nil, fmt.Errorf("the certificate of %s is not that of an authority: it has no CA flag", Name(c))
		}
		if c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
			return nil, fmt.Errorf("the authority %s may not sign certificates: its key usage has no keyCertSign", Name(c))
		}
		if err := usable(c.PublicKey); err != nil {
			return nil, fmt.Errorf("the authority %s: %w", Name(c), err)
		}
	}
	return found, nil
}

func parseClient(chain, key string) (*tls.Certificate, error) {
	switch {
	case chain == "":
		return nil, errors.New("the private key has no client certificate: give both, or neither")
	case key == "":
		return nil, errors.New("the client certificate has no private key: give both, or neither")
	}
	found, err := parseCertificates(chain, MaxChain)
	if err != nil {
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	private, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("the private key: %w", err)
	}
	public, is := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !is || !public.Equal(found[0].PublicKey) {
		const fault = "the private key does not belong to the client certificate of %s, the first of its file"
		return nil, fmt.Errorf(fault, Name(found[0]))
	}
	client := withChain(found)
	client.PrivateKey = private
	return client, nil
}

func withChain(chain []*x509.Certificate) *tls.Certificate {
	client := &tls.Certificate{Leaf: chain[0]}
	for _, c := range chain {
		client.Certificate = append(client.Certificate, c.Raw)
	}
	return client
}

// parseCertificates returns the certificates of a PEM text, at least one.
func parseCertificates(text string, most int) ([]*x509.Certificate, error) {
	blocks, err := decode(text, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	var found []*x509.Certificate
	for _, b := range blocks {
		if strings.Contains(b.Type, "PRIVATE KEY") {
			return nil, errors.New("there is a private key where only certificates belong")
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a block of the type %.40q where only CERTIFICATE belongs", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(found)+1, err)
		}
		if found = append(found, c); len(found) > most {
			return nil, fmt.Errorf("there are more than %d certificates", most)
		}
	}
	return found, nil
}

func parseKey(text string) (crypto.Signer, error) {
	blocks, err := decode(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	var found *pem.Block
	for _, b := range blocks {
		switch {
		case b.Type == "EC PARAMETERS": // openssl writes the curve before the key, which names it again
			continue
		case b.Type == "CERTIFICATE":
			return nil, errors.New("there is a certificate where only the private key belongs")
		case b.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, errors.New("it is encrypted: decrypt it first, for instance with `openssl pkey`")
		case found != nil:
			return nil, errors.New("there is more than one key")
		}
		found = b
	}
	if found == nil {
		return nil, errors.New("there is no key, only the parameters of a curve")
	}
	if len(found.Bytes) > maxKey {
		return nil, errUnusable
	}
	var key any
	switch found.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(found.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(found.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(found.Bytes)
	default:
		return nil, fmt.Errorf("there is a block of the type %.40q where the private key belongs", found.Type)
	}
	if err != nil {
		return nil, errors.New("it cannot be read: it is damaged, or of a kind that TLS does not use")
	}
	signer, is := key.(crypto.Signer)
	if !is {
		return nil, errUnusable
	}
	return signer, usable(signer.Public())
}

// decode returns the blocks of a PEM text, at least one.
func decode(text, kind string) ([]*pem.Block, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("the text is longer than %d bytes", MaxPEM)
	}
	var blocks []*pem.Block
	for rest := []byte(text); ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("it is not PEM: it must begin with -----BEGIN %s-----", kind)
	}
	if bytes.Count([]byte(text), []byte("-----BEGIN ")) != len(blocks) { // pem.Decode passes over what it cannot read
		return nil, errors.New("a PEM block is damaged")
	}
	return blocks, nil
}

var errUnusable = fmt.Errorf(
	"the key is not of a kind that TLS uses: RSA of %d to %d bits, ECDSA on P-256, P-384 or P-521, or Ed25519",
	minRSA, maxRSA,
)

// usable checks the kind and size of a public key.
func usable(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n >= minRSA && n <= maxRSA {
			return nil
		}
	case *ecdsa.PublicKey:
		if n := k.Curve.Params().BitSize; n >= 256 {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return errUnusable
}
