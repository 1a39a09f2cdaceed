package partner

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// MaxCertificates is the largest body with certificates, in bytes: three texts of certs.MaxPEM, whose lines JSON makes
// longer, and a URL.
const MaxCertificates = 256 << 10

type certificatesJSON struct {
	Certificates []urlCertificatesJSON `json:"certificates"`
}

type urlCertificatesJSON struct {
	URL         string            `json:"url"`
	Used        bool              `json:"used"` // it is the partner's URL
	ChangedAt   string            `json:"changedAt"`
	Authorities []certificateJSON `json:"authorities"`
	Client      []certificateJSON `json:"client"` // followed by its intermediate authorities
}

type certificateJSON struct {
	Subject   string `json:"subject"`
	Issuer    string `json:"issuer"`
	SHA256    string `json:"sha256"`
	NotBefore string `json:"notBefore"`
	NotAfter  string `json:"notAfter"`
}

// Certificates shows the caller's certificates, those of its current URL first.
func (w *Webhooks) Certificates(r *serve.Request) (*serve.Answer, error) {
	stored, err := registry.ListCertificates(r.Context, w.pool, int64(r.Partner.ID))
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	out := certificatesJSON{make([]urlCertificatesJSON, len(stored))}
	for i, s := range stored {
		out.Certificates[i] = urlCertificatesJSON{
			s.URL, s.Current, serve.Millis(s.ChangedAt), described(s.Authorities), described(s.ClientChain()),
		}
	}
	return &serve.Answer{Data: out}, nil
}

func described(certificates []*x509.Certificate) []certificateJSON {
	out := make([]certificateJSON, len(certificates))
	for i, c := range certs.Describe(certificates) {
		out[i] = certificateJSON{c.Subject, c.Issuer, c.Fingerprint, serve.Millis(c.NotBefore), serve.Millis(c.NotAfter)}
	}
	return out
}

// SetCertificates stores certificates for a URL of the caller, and shows all that it has then.
func (w *Webhooks) SetCertificates(r *serve.Request) (*serve.Answer, error) {
	body, err := r.JSONBody()
	if err != nil {
		return nil, err
	}
	given, url, err := parseCertificates(body)
	if err != nil {
		return nil, err
	}
	sealer, err := registry.ProvenSealer(r.Context, w.pool, w.SecretKey)
	if err != nil {
		return nil, changeFailure(err, unknownCertificates)
	}
	if _, err := registry.SetCertificates(r.Context, w.pool, author(r), sealer, int64(r.Partner.ID), url,
		given); err != nil {
		return nil, certificatesFailure(err)
	}
	return w.Certificates(r)
}

// RemoveCertificates removes certificates for a URL of the caller, and shows those that are left.
func (w *Webhooks) RemoveCertificates(r *serve.Request) (*serve.Answer, error) {
	body, err := optionalBody(r)
	if err != nil {
		return nil, err
	}
	fields, err := textFields(body, "only", "url")
	if err != nil {
		return nil, err
	}
	only, partly := fields["only"]
	if partly && only != "authorities" && only != "client" {
		return nil, serve.InvalidBody(`The field only must be "authorities" or "client", or absent, which removes both.`)
	}
	url, err := canonical(fields["url"])
	if err != nil {
		return nil, err
	}
	_, err = registry.RemoveCertificates(
		r.Context, w.pool, author(r), int64(r.Partner.ID), url, only != "client", only != "authorities",
	)
	if err != nil {
		return nil, certificatesFailure(err)
	}
	return w.Certificates(r)
}

// parseCertificates parses {"authorities": PEM, "certificate": PEM, "key": PEM, "url": "..."}; the certificate and its
// key come together, and everything else may be absent. Unknown fields are ignored, and names are case-sensitive.
func parseCertificates(body []byte) (given certs.Pinned, url string, err error) {
	fields, err := textFields(body, "authorities", "certificate", "key", "url")
	if err != nil {
		return given, "", err
	}
	texts := certs.Texts{Authorities: fields["authorities"], Client: fields["certificate"], Key: fields["key"]}
	if texts == (certs.Texts{}) {
		return given, "", serve.InvalidBody("There are no certificates in the body: give authorities, or certificate and " +
			"key, or all three.")
	}
	if given, err = texts.Parse(); err != nil {
		return given, "", notAccepted(err)
	}
	url, err = canonical(fields["url"])
	return given, url, err
}

// object parses a JSON object; otherwise is the message about any other body.
func object(body []byte, otherwise string) (fields map[string]json.RawMessage, err error) {
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, serve.InvalidBody(otherwise)
	}
	return fields, nil
}

// optionalBody returns the body of a request, or an empty object if it has none.
func optionalBody(r *serve.Request) ([]byte, error) {
	if !r.HasBody() {
		return []byte("{}"), nil
	}
	return r.JSONBody()
}

// textFields returns those of the named fields that a JSON object has; each must be a text that is not empty.
func textFields(body []byte, names ...string) (map[string]string, error) {
	fields, err := object(body, "The body must be a JSON object.")
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for _, name := range names {
		raw, given := fields[name]
		if !given {
			continue
		}
		var text *string
		if json.Unmarshal(raw, &text) != nil || text == nil || *text == "" {
			return nil, serve.InvalidBody("The field " + name + " must be a string that is not empty, or absent.")
		}
		found[name] = *text
	}
	return found, nil
}

// canonical returns the form in which dispatch compares a URL; an empty one stays empty. It does not look the host up:
// the certificates may be set before there is one.
func canonical(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	text, err := webhookURL(given)
	if err != nil {
		return "", err
	}
	url, err := guard.Canonical(text)
	var refusal *guard.Refusal
	if errors.As(err, &refusal) {
		return "", invalidWebhookURL(refusal.Reason, refusal.Error())
	}
	return url, err
}

func notAccepted(err error) *serve.Failure {
	return serve.InvalidBody("The certificates are not accepted: " + err.Error() + ".")
}

// certificatesFailure is what an error of the registry means to the partner.
func certificatesFailure(err error) *serve.Failure {
	var date *certs.DateError
	var noURL *registry.NoURLError
	var full *registry.TooManyURLsError
	var none *registry.NoCertificatesError
	switch {
	case errors.As(err, &date):
		return notAccepted(date)
	case errors.As(err, &noURL):
		return serve.NotFound("There is no webhook URL yet: register one, or name the URL in the field url.")
	case errors.As(err, &none):
		return serve.NotFound("There are no such certificates for this URL.")
	case errors.As(err, &full):
		return &serve.Failure{
			Status: http.StatusConflict, Code: serve.CodeInvalidBody,
			Message: "Four other URLs have certificates, and more are not allowed: remove those of a URL that you no longer " +
				"use.",
		}
	}
	return changeFailure(err, unknownCertificates)
}
