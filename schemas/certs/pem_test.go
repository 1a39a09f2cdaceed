package certs_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// selfSigned returns a certificate of a key in PEM; change makes it unusual.
func selfSigned(key crypto.Signer, change func(*x509.Certificate)) string {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "acme"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(c)
	}
	return block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)))
}

// Every kind of key that TLS uses is accepted, in every form in which openssl writes it, and stored in one form.
func TestTexts(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t)
	for name, key := range map[string]crypto.Signer{
		"RSA 2048": must(rsa.GenerateKey(rand.Reader, 2048)), "P-256": must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		"P-384":   must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"P-521":   must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"Ed25519": ed25519.NewKeyFromSeed(make([]byte, 32)),
	} {
		forms := []string{block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))}
		switch k := key.(type) {
		case *rsa.PrivateKey:
			forms = append(forms, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)))
		case *ecdsa.PrivateKey:
			old := block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(k)))
			forms = append(forms, old, block("EC PARAMETERS", []byte{6, 0})+old)
		}
		for _, form := range forms {
			given := certs.Texts{
				Authorities: "Bag Attributes: none\n" + ca.PEM() + "\n\n" + selfSigned(key, nil),
				Client:      "subject=acme\n" + selfSigned(key, nil) + ca.PEM(), Key: form,
			}
			p, err := given.Parse()
			if err != nil || len(p.Authorities) != 2 || len(p.ClientChain()) != 2 || !p.ClientChain()[0].Equal(p.Client.Leaf) {
				t.Errorf("%s: %v, %+v", name, err, p)
				continue
			}
			stored, err := p.Texts()
			if err != nil || strings.Contains(stored.Authorities+stored.Client, "Bag") ||
				!strings.HasPrefix(stored.Key, "-----BEGIN PRIVATE KEY") {
				t.Errorf("%s is stored as %+v, %v", name, stored, err)
			}
			again, err := stored.Parse()
			if err != nil || len(again.Authorities) != 2 || !again.Client.Leaf.Equal(p.Client.Leaf) {
				t.Errorf("%s, read from the store: %v", name, err)
			}
			public, err := certs.ParsePublic(stored.Authorities, stored.Client)
			if err != nil || public.Client.PrivateKey != nil || !public.Client.Leaf.Equal(p.Client.Leaf) {
				t.Errorf("%s, read without its key: %v", name, err)
			}
		}
	}
	if none, err := (certs.Texts{}).Parse(); err != nil || none.Client != nil || none.ClientChain() != nil ||
		none.Pool(nil) != nil {
		t.Errorf("no texts: %+v, %v", none, err)
	}
}

// Every mistake in certificates is reported in one sentence, which contains no part of the key.
func TestWrongTexts(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t)
	good := ca.Texts(ca.Client("acme"))
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	small := must(rsa.GenerateKey(rand.Reader, 1024))
	odd := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	pkcs8 := func(key any) string { return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))) }
	const notTLS = "not of a kind that TLS uses"
	for name, c := range map[string]struct {
		texts certs.Texts
		want  string
	}{
		"authorities: no PEM": {certs.Texts{Authorities: "acme"},
			"not PEM: it must begin with -----BEGIN CERTIFICATE-----"},
		"authorities: a key": {certs.Texts{Authorities: good.Key}, "a private key where only certificates belong"},
		"authorities: a key too": {certs.Texts{Authorities: ca.PEM() + good.Key},
			"a private key where only certificates belong"},
		"authorities: a request": {certs.Texts{Authorities: block("CERTIFICATE REQUEST", nil)},
			`the type "CERTIFICATE REQUEST"`},
		"authorities: no authority": {certs.Texts{Authorities: good.Client},
			`"CN=acme" is not that of an authority: it has no CA flag`},
		"authorities: may not sign": {certs.Texts{Authorities: selfSigned(key,
			func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })}, "may not sign certificates"},
		"authorities: a small key": {certs.Texts{Authorities: selfSigned(small, nil)}, notTLS},
		"authorities: damaged": {certs.Texts{Authorities: block("CERTIFICATE", []byte("damaged"))},
			"certificate 1 cannot be read"},
		"authorities: a damaged second": {certs.Texts{Authorities: ca.PEM() + strings.Replace(ca.PEM(), "\n", "\n!", 2)},
			"a PEM block is damaged"},
		"authorities: too many": {certs.Texts{Authorities: strings.Repeat(ca.PEM(), certs.MaxAuthorities+1)},
			"more than 32 certificates"},
		"authorities: too long": {certs.Texts{Authorities: ca.PEM() + strings.Repeat("#", certs.MaxPEM)},
			"longer than 65536 bytes"},
		"client: no PEM": {certs.Texts{Client: "acme", Key: good.Key}, "the client certificate: it is not PEM"},
		"client: a key": {certs.Texts{Client: good.Key, Key: good.Key},
			"a private key where only certificates belong"},
		"client: without key": {certs.Texts{Client: good.Client}, "the client certificate has no private key"},
		"client: another key": {certs.Texts{Client: good.Client, Key: pkcs8(key)},
			`does not belong to the client certificate of "CN=acme"`},
		"client: the chain first": {certs.Texts{Client: ca.PEM() + good.Client, Key: good.Key},
			`does not belong to the client certificate of "CN=an authority"`},
		"client: too long a chain": {certs.Texts{Client: good.Client + strings.Repeat(ca.PEM(), certs.MaxChain),
			Key: good.Key}, "more than 10 certificates"},
		"key: no certificate": {certs.Texts{Key: good.Key}, "the private key has no client certificate"},
		"key: no PEM": {certs.Texts{Client: good.Client, Key: "secret"},
			"the private key: it is not PEM: it must begin with -----BEGIN PRIVATE KEY-----"},
		"key: a certificate": {certs.Texts{Client: good.Client, Key: good.Client},
			"a certificate where only the private key belongs"},
		"key: encrypted": {certs.Texts{Client: good.Client, Key: block("ENCRYPTED PRIVATE KEY", []byte("x"))},
			"it is encrypted: decrypt it first"},
		"key: encrypted, old format": {certs.Texts{Client: good.Client, Key: string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"},
			Bytes: []byte("x"),
		}))}, "it is encrypted: decrypt it first"},
		"key: two": {certs.Texts{Client: good.Client, Key: good.Key + good.Key}, "more than one key"},
		"key: damaged": {certs.Texts{Client: good.Client, Key: block("PRIVATE KEY", []byte("secret"))},
			"the private key: it cannot be read"},
		"key: only a curve": {certs.Texts{Client: good.Client, Key: block("EC PARAMETERS", []byte{6, 0})},
			"only the parameters of a curve"},
		"key: another format": {certs.Texts{Client: good.Client, Key: block("OPENSSH PRIVATE KEY", []byte("x"))},
			`the type "OPENSSH PRIVATE KEY"`},
		"key: too long": {certs.Texts{Client: good.Client, Key: block("RSA PRIVATE KEY", make([]byte, 9<<10))},
			notTLS},
		"key: RSA of 1024 bits": {certs.Texts{Client: selfSigned(small, nil), Key: pkcs8(small)}, notTLS},
		"key: P-224":            {certs.Texts{Client: selfSigned(odd, nil), Key: pkcs8(odd)}, notTLS},
	} {
		_, err := c.texts.Parse()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the key: %v", name, err)
		}
	}
}

// A hostile subject is shown on one line, without control characters, and not at any length.
func TestDescribe(t *testing.T) {
	t.Parallel()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	long := strings.Repeat("x", 2000)
	for name, want := range map[string]string{"acme": "CN=acme", "a\x1b[2Jb\nc": "CN=a\ufffd[2Jb c",
		long: "CN=" + long[:997]} {
		text := selfSigned(key, func(c *x509.Certificate) { c.Subject.CommonName = name })
		p := must(certs.ParsePublic("", text))
		d := certs.Describe(p.ClientChain())[0]
		if d.Subject != want || d.Issuer != want || !d.NotAfter.Equal(p.Client.Leaf.NotAfter) || len(d.Fingerprint) != 64 {
			t.Errorf("%.20q is described as %+v", name, d)
		}
	}
}

// The first certificate that is not valid is named, with its date.
func TestDates(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	ca := must(certstest.NewCA("an authority", now, now.Add(time.Hour)))
	old := must(ca.IssueUntil("old", now.Add(-2*time.Hour), now.Add(-time.Hour))).Leaf
	next := must(ca.IssueUntil("next", now.Add(time.Hour), now.Add(2*time.Hour))).Leaf
	nameless := must(ca.IssueUntil("", now.Add(-2*time.Hour), now.Add(-time.Hour))).Leaf
	date := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		given []*x509.Certificate
		want  string
	}{
		{nil, ""},
		{[]*x509.Certificate{ca.Certificate}, ""},
		{[]*x509.Certificate{ca.Certificate, old}, `the certificate of "CN=old" expired at ` + date(old.NotAfter)},
		{[]*x509.Certificate{next}, `the certificate of "CN=next" is not valid before ` + date(next.NotBefore)},
		{[]*x509.Certificate{nameless}, "the certificate of serial number " + nameless.SerialNumber.Text(16)},
	} {
		var date *certs.DateError
		if err := certs.Current(c.given, now); err != nil && !errors.As(err, &date) || (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if got := certs.Expiry([]*x509.Certificate{next, ca.Certificate}); !got.Equal(ca.Certificate.NotAfter) ||
		!certs.Expiry(nil).IsZero() {
		t.Errorf("the first expiry is %s", got)
	}
}
