package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry/db"
)

const urlOf7 = "https://seven.example/hook"

// seven is a registry with a partner 7 that has a URL.
type seven struct {
	*testing.T
	pool   *pgxpool.Pool
	q      *db.Queries
	sealer *Sealer
	ca     *certstest.Authority
}

func newSeven(t *testing.T, pool *pgxpool.Pool) *seven {
	t.Helper()
	s := &seven{T: t, pool: pool, q: db.New(pool), sealer: sealerOf(t, 7), ca: certstest.New(t)}
	_, err := CreatePartner(t.Context(), pool, "test", s.sealer, 7, "Seven", true)
	s.check(err)
	s.changeURL(urlOf7)
	return s
}

func sealerOf(t *testing.T, keys ...byte) *Sealer {
	t.Helper()
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{k}, 32))
	}
	s, err := NewSealer(strings.Join(texts, ","))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *seven) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *seven) changeURL(url string) {
	s.Helper()
	_, err := s.q.SetWebhookURL(s.Context(), db.SetWebhookURLParams{PartnerID: 7, Url: &url})
	s.check(err)
}

// given parses certificates, as the command does.
func (s *seven) given(texts certs.Texts) certs.Pinned {
	s.Helper()
	p, err := texts.Parse()
	s.check(err)
	return p
}

func (s *seven) set(url string, texts certs.Texts) {
	s.Helper()
	_, err := SetCertificates(s.Context(), s.pool, Author{Name: "alice"}, s.sealer, 7, url, s.given(texts))
	s.check(err)
}

// used returns what dispatch gets for the partner: the version of the endpoint, the id of its certificates, and these,
// opened with a sealer.
func (s *seven) used(sealer *Sealer) (version, id int64, p certs.Pinned, err error) {
	s.Helper()
	rows, err := s.q.Endpoints(s.Context(), nil)
	s.check(err)
	if len(rows) != 1 {
		s.Fatalf("%d endpoints", len(rows))
	}
	version, id = rows[0].Version, rows[0].CertificatesID
	if id == 0 {
		return version, 0, p, nil
	}
	p, err = sealer.OpenCertificates(rows[0])
	return version, id, p, err
}

// client returns the name in the client certificate that dispatch uses, "" without one.
func (s *seven) client() string {
	s.Helper()
	_, _, p, err := s.used(s.sealer)
	s.check(err)
	if p.Client == nil {
		return ""
	}
	return p.Client.Leaf.Subject.CommonName
}

// Certificates belong to a URL: they are used while it is the partner's, and no other URL gets them. Each part can be
// replaced and removed without the other, and each change is another version with another id.
func TestCertificatesOfAURL(t *testing.T) {
	s := newSeven(t, open(t, migrated.Postgres(t)))
	before, none, _, _ := s.used(s.sealer)
	s.set("", s.ca.Texts(s.ca.Client("first")))
	version, id, p, err := s.used(s.sealer)
	if err != nil || none != 0 || id == 0 || version != before+1 || len(p.Authorities) != 1 ||
		p.Client.Leaf.Subject.CommonName != "first" {
		t.Fatalf("version %d after %d, certificates %d: %+v, %v", version, before, id, p, err)
	}

	renewed := s.ca.Texts(s.ca.Client("second"))
	s.set(urlOf7, certs.Texts{Client: renewed.Client, Key: renewed.Key})
	next, other, p, err := s.used(s.sealer)
	if err != nil || other == id || next != version+1 || len(p.Authorities) != 1 ||
		p.Client.Leaf.Subject.CommonName != "second" {
		t.Errorf("a renewed certificate: version %d, certificates %d, %+v, %v", next, other, p, err)
	}

	// The URL that the partner will change to.
	const url = "https://next.example/hook"
	s.set(url, s.ca.Texts(s.ca.Client("next")))
	if got := s.client(); got != "second" {
		t.Errorf("the certificate %q of another URL is used", got)
	}
	s.changeURL(url)
	if got := s.client(); got != "next" {
		t.Errorf("after the change of the URL the certificate is %q", got)
	}
	s.changeURL("https://other.example/hook")
	if _, id, _, _ := s.used(s.sealer); id != 0 {
		t.Error("another host gets the certificates")
	}
	s.changeURL(urlOf7)

	all, err := ListCertificates(t.Context(), s.pool, 7)
	if err != nil || len(all) != 2 || all[0].URL != urlOf7 || !all[0].Current || all[1].Current ||
		all[0].Client.PrivateKey != nil {
		t.Errorf("the list is %+v, %v", all, err)
	}
	expiries, err := s.q.CertificateExpiries(t.Context())
	if err != nil || len(expiries) != 1 || !expiries[0].ClientExpires.Equal(all[0].Client.Leaf.NotAfter) ||
		!expiries[0].AuthoritiesExpire.Equal(s.ca.Certificate.NotAfter) {
		t.Errorf("expiries %+v, %v", expiries, err)
	}

	last, _, _, _ := s.used(s.sealer)
	_, err = RemoveCertificates(t.Context(), s.pool, Author{Name: "alice"}, 7, "", false, true)
	s.check(err)
	if version, id, p, _ := s.used(s.sealer); version != last+1 || id == 0 || p.Client != nil || len(p.Authorities) != 1 {
		t.Errorf("without the client certificate: version %d after %d, and %+v", version, last, p)
	}
	if _, err = RemoveCertificates(t.Context(), s.pool, Author{Name: "alice"}, 7, "", false, true); err == nil ||
		!strings.Contains(err.Error(), "no such certificates") {
		t.Errorf("removed again: %v", err)
	}
	_, err = RemoveCertificates(t.Context(), s.pool, Author{Name: "alice"}, 7, "", true, true)
	s.check(err)
	if version, id, _, _ := s.used(s.sealer); version != last+2 || id != 0 {
		t.Errorf("removed certificates: version %d after %d, certificates %d", version, last+1, id)
	}
	audit, err := s.q.ListAudit(t.Context(), db.ListAuditParams{PartnerID: 7, Limit: 100})
	s.check(err)
	var deeds []string
	for _, a := range audit {
		if strings.HasPrefix(a.Command, "partner certificates") {
			deeds = append(deeds, a.Operator+": "+a.Command)
		}
		if strings.Contains(a.Detail, "PRIVATE") || strings.Contains(a.Detail, urlOf7) {
			t.Errorf("the audit has %q", a.Detail)
		}
	}
	if want := "[alice: partner certificates remove alice: partner certificates remove alice: partner certificates set " +
		"alice: partner certificates set alice: partner certificates set]"; fmt.Sprint(deeds) != want {
		t.Errorf("the audit has %v", deeds)
	}
}

// Certificates that cannot be used are rejected, and nothing changes.
func TestCertificatesRejected(t *testing.T) {
	s := newSeven(t, open(t, migrated.Postgres(t)))
	hour := time.Now().Add(-time.Hour)
	late, err := s.ca.IssueUntil("late", hour.Add(-time.Hour), hour)
	s.check(err)
	old, err := certstest.NewCA("old", hour.Add(-time.Hour), hour)
	s.check(err)
	good := s.given(s.ca.Texts(s.ca.Client("acme")))
	if _, err := CreatePartner(t.Context(), s.pool, "test", s.sealer, 8, "Eight", true); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		partner int64
		given   certs.Pinned
		want    string
	}{
		"expired client certificate": {7, s.given(s.ca.Texts(late)), `the certificate of "CN=late" expired`},
		"expired authority": {7, s.given(certs.Texts{Authorities: old.PEM()}),
			`the certificate of "CN=old" expired`},
		"no URL":     {8, good, "partner 8 has no webhook URL: name the URL"},
		"no partner": {9, good, "there is no partner 9"},
	} {
		_, err := SetCertificates(t.Context(), s.pool, Author{Name: "alice"}, s.sealer, c.partner, "", c.given)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	for n := range MaxCertificates {
		s.set(fmt.Sprintf("https://seven.example/%d", n), s.ca.Texts(s.ca.Client("acme")))
	}
	if _, err := SetCertificates(t.Context(), s.pool, Author{Name: "alice"}, s.sealer, 7, "", good); err == nil ||
		!strings.Contains(err.Error(), "certificates for 4 URLs") {
		t.Errorf("one URL too many: %v", err)
	}
	s.set("https://seven.example/0", s.ca.Texts(s.ca.Client("renewed"))) // a known one can still be renewed
	var stored int
	s.check(s.pool.QueryRow(t.Context(), "SELECT count(*) FROM endpoint_certificates").Scan(&stored))
	if stored != MaxCertificates {
		t.Errorf("%d URLs have certificates", stored)
	}
}

// The client key is sealed for its partner and URL, and sealed again with the newest key like the signing secrets. With
// a wrong key it cannot be opened, and the error names the key that is needed.
func TestClientKeysAreSealed(t *testing.T) {
	s := newSeven(t, open(t, migrated.Postgres(t)))
	texts := s.ca.Texts(s.ca.Client("acme"))
	s.set("", texts)
	var sealed []byte
	s.check(s.pool.QueryRow(t.Context(), "SELECT client_key FROM endpoint_certificates").Scan(&sealed))
	if bytes.Contains(sealed, []byte("PRIVATE")) {
		t.Error("the key is stored unencrypted")
	}
	for what, open := range map[string]func() (string, error){
		"as another partner's": func() (string, error) { return s.sealer.openClientKey(8, urlOf7, sealed) },
		"as another URL's":     func() (string, error) { return s.sealer.openClientKey(7, urlOf7+"2", sealed) },
		"as a signing secret":  func() (string, error) { return s.sealer.Open(7, sealed) },
		"a secret as its key": func() (string,
			error) {
			return s.sealer.openClientKey(7, urlOf7, s.sealer.Seal(7, "whsec_"))
		},
		"with another key":     func() (string, error) { return sealerOf(t, 8).openClientKey(7, urlOf7, sealed) },
		"after it was cut off": func() (string, error) { return s.sealer.openClientKey(7, urlOf7, sealed[:5]) },
		"after it was emptied": func() (string, error) { return s.sealer.openClientKey(7, urlOf7, nil) },
		"with one other bit": func() (string, error) {
			return s.sealer.openClientKey(7, urlOf7, append(sealed[:len(sealed)-1:len(sealed)-1], sealed[len(sealed)-1]^1))
		},
	} {
		if got, err := open(); err == nil || got != "" {
			t.Errorf("%s: the key can be opened", what)
		}
	}
	_, _, _, err := s.used(sealerOf(t, 8))
	if err == nil || !strings.Contains(err.Error(), "the key of the client certificate of partner 7, sealed with key") {
		t.Errorf("with the wrong key: %v", err)
	}

	_, id, _, _ := s.used(s.sealer)
	progress := func(uint64, uint64) {}
	if _, err := Reseal(t.Context(), s.pool, "alice", sealerOf(t, 8), progress); err == nil {
		t.Error("sealed again without the old key")
	}
	done, err := Reseal(t.Context(), s.pool, "alice", sealerOf(t, 8, 7), progress)
	if err != nil || done.Secrets != 2 { // the signing secret and the client key
		t.Fatalf("sealed again: %+v, %v", done, err)
	}
	_, same, p, err := s.used(sealerOf(t, 8))
	if err != nil || same != id || p.Client.Leaf.Subject.CommonName != "acme" {
		t.Errorf("with the new key: certificates %d instead of %d, %v", same, id, err)
	}
	if done, err := Reseal(t.Context(), s.pool, "alice", sealerOf(t, 8, 7), progress); err != nil || done.Secrets != 0 {
		t.Errorf("sealed a third time: %+v, %v", done, err)
	}

	// The old key is lost, and so is the client key: it is set again.
	_, err = RotateSecret(t.Context(), s.pool, Author{Name: "alice"}, sealerOf(t, 9), 7, 0)
	s.check(err)
	if _, err := Reseal(t.Context(), s.pool, "alice", sealerOf(t, 9), progress); err == nil ||
		!strings.Contains(err.Error(), "navlog partner certificates set 7") {
		t.Errorf("with the client key lost: %v", err)
	}
	s.sealer = sealerOf(t, 9)
	s.set("", texts)
	if _, err := Reseal(t.Context(), s.pool, "alice", s.sealer, progress); err != nil || s.client() != "acme" {
		t.Errorf("set again: %v", err)
	}
}

// Operators write certificates and dispatch reads them. serve reads them without the keys, and writes them only with
// the role of rotations, which cannot read the keys either. No other program sees any.
func TestCertificatesByRole(t *testing.T) {
	url := migrated.Postgres(t)
	owner := open(t, url)
	s := newSeven(t, owner)
	s.check(GrantRoles(t.Context(), owner))
	operator := *s
	operator.pool = as(t, url, "navlog_operator")
	operator.set("", s.ca.Texts(s.ca.Client("acme")))
	operator.set("", s.ca.Texts(s.ca.Client("renewed")))
	if _, err := RemoveCertificates(t.Context(), operator.pool, Author{Name: "alice"}, 7, "", true, false); err != nil {
		t.Errorf("navlog_operator cannot remove a part of them: %v", err)
	}
	if _, err := ListCertificates(t.Context(), operator.pool, 7); err != nil {
		t.Errorf("navlog_operator cannot list them: %v", err)
	}
	if _, err := Reseal(t.Context(), operator.pool, "alice", sealerOf(t, 8, 7), func(uint64, uint64) {}); err != nil {
		t.Errorf("navlog_operator cannot seal them again: %v", err)
	}
	dispatch := *s
	dispatch.pool = as(t, url, "navlog_dispatch")
	dispatch.q = db.New(dispatch.pool)
	if _, id, _, err := dispatch.used(sealerOf(t, 8)); err != nil || id == 0 {
		t.Errorf("navlog_dispatch cannot use them: %v", err)
	}
	if _, err := dispatch.q.CertificateExpiries(t.Context()); err != nil {
		t.Errorf("navlog_dispatch cannot measure them: %v", err)
	}
	if _, err := RemoveCertificates(t.Context(), dispatch.pool, Author{Name: "alice"}, 7, "", true, true); err == nil {
		t.Error("navlog_dispatch removes certificates")
	}
	for role, want := range map[string]string{
		"navlog_ingest": "", "navlog_project": "", "navlog_serve": "SELECT", "navlog_rotation": "INSERT UPDATE DELETE",
	} {
		var may []string
		for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
			var has bool
			s.check(owner.QueryRow(t.Context(), "SELECT has_any_column_privilege($1, 'endpoint_certificates', $2)", role,
				right).Scan(&has))
			if has {
				may = append(may, right)
			}
		}
		var deletes, reads bool
		s.check(owner.QueryRow(t.Context(), "SELECT has_table_privilege($1, 'endpoint_certificates', 'DELETE'), "+
			"has_column_privilege($1, 'endpoint_certificates', 'client_key', 'SELECT')", role).Scan(&deletes, &reads))
		if deletes {
			may = append(may, "DELETE")
		}
		if got := strings.Join(may, " "); got != want || reads {
			t.Errorf("%s has the rights %q, want %q, and reads keys: %t", role, got, want, reads)
		}
	}
	if _, err := RemoveCertificates(t.Context(), operator.pool, Author{Name: "alice"}, 7, "", true, true); err != nil {
		t.Errorf("navlog_operator cannot remove them: %v", err)
	}
	var none *NoURLError
	if _, err := CreatePartner(t.Context(), owner, "test", s.sealer, 8, "Eight", true); err != nil {
		t.Fatal(err)
	}
	if _, err := RemoveCertificates(context.Background(), operator.pool, Author{Name: "alice"}, 8, "", true,
		true); !errors.As(err, &none) {
		t.Errorf("without a URL: %v", err)
	}
}
