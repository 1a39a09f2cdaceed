package lane

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// failure returns the result of a POST that got no response. Partners read Err in their delivery log, so it names only
// the kind of failure and the partner's own host or address. Details of navlog's side, such as the resolver and the
// local address of the connection, are only in Cause.
func failure(err error, auth clientAuth) Result {
	r := Result{Outcome: outcomeNetwork, Cause: err}
	var refusal *guard.Refusal
	var network net.Error
	switch {
	case errors.As(err, &refusal):
		r.Outcome, r.Err = outcomeForbidden, printable.Text(refusal.Error(), printable.Sentence)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		r.Outcome, r.Err = outcomeTimeout, "no response in time"
	default:
		r.Err = printable.Text(auth.explain(err, time.Now()), printable.Sentence)
	}
	return r
}

// clientAuth is the state of a connection with regard to a client certificate.
type clientAuth struct {
	asked bool                // the receiver asked for one
	sent  []*x509.Certificate // the certificate that it got then, with its chain; empty: none
}

// alertRequired is the TLS 1.3 alert of a receiver that demands a client certificate. Older versions have no such
// alert, and some servers only close the connection; that the receiver asked for one is the only sign.
const alertRequired = "tls: certificate required"

// explain returns reason, with what is known about the client certificate.
func (c clientAuth) explain(err error, now time.Time) string {
	var op *net.OpError
	alert := ""
	if errors.As(err, &op) && op.Addr == nil && op.Op == "remote error" {
		alert = op.Err.Error()
	}
	expired := certs.Current(c.sent, now)
	switch {
	case alert == alertRequired && len(c.sent) == 0:
		return "the receiver demands a client certificate, and navlog has none for this URL"
	case !c.asked:
		return reason(err)
	case len(c.sent) == 0:
		return reason(err) + "; the receiver asked for a client certificate, and navlog has none for this URL"
	case expired != nil:
		return reason(err) + "; the receiver asked for a client certificate, and " + expired.Error()
	case alert != "":
		return "the receiver rejected navlog's client certificate: " + alert
	}
	return reason(err) + "; the receiver had asked for a client certificate and got one"
}

// reason describes an error of the transport. Errors that are not from the network come
// from net/http or crypto/tls and describe the receiver's bytes: they name its host, but
// never the whole URL, which may hold a token. A looked-up name ends with the root's dot,
// which its partner did not write.
func reason(err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "the receiver's certificate is signed by an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return outdated(invalid.Cert, time.Now())
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return guard.NotPublic(strings.TrimSuffix(lookup.Name, "."))
	case lookup != nil:
		return "the name " + strings.TrimSuffix(lookup.Name, ".") + " cannot be looked up"
	case errors.As(err, &op) && op.Addr == nil: // a TLS alert
		return op.Op + ": " + op.Err.Error()
	case op != nil:
		return op.Addr.String() + " " + disconnected(op)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before a response"
	}
	return strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
}

// outdated describes a certificate of the receiver, or of its authority, that is not valid now.
func outdated(c *x509.Certificate, now time.Time) string {
	if err := certs.Current([]*x509.Certificate{c}, now); err != nil {
		return "the receiver cannot be verified: " + err.Error()
	}
	return "the receiver's certificate is not valid at this time"
}

// disconnected describes how a connection failed.
func disconnected(op *net.OpError) string {
	switch {
	case errors.Is(op, syscall.ECONNREFUSED):
		return "refused the connection"
	case errors.Is(op, syscall.ECONNRESET), errors.Is(op, syscall.EPIPE):
		return "reset the connection"
	case op.Op == "dial":
		return "cannot be reached"
	}
	return "lost the connection"
}
