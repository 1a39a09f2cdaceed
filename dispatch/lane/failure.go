package lane

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// failure returns the result of a POST that got no response. Partners read Err in their delivery log, so it names only
// the kind of failure and the partner's own host or address. Details of navlog's side, such as the resolver and the
// local address of the connection, are only in Cause.
func failure(err error) Result {
	r := Result{Outcome: outcomeNetwork, Cause: err}
	var refusal *guard.Refusal
	var network net.Error
	switch {
	case errors.As(err, &refusal):
		r.Outcome, r.Err = outcomeForbidden, printable.Text(refusal.Error(), printable.Sentence)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		r.Outcome, r.Err = outcomeTimeout, "no response in time"
	default:
		r.Err = printable.Text(reason(err), printable.Sentence)
	}
	return r
}

// reason describes an error of the transport. Errors that are not from the network come
// from net/http or crypto/tls and describe the receiver's bytes: they name its host, but
// never the whole URL, which may hold a token. A looked-up name ends with the root's dot,
// which its partner did not write.
func reason(err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "the name " + strings.TrimSuffix(lookup.Name, ".") + " has no address"
	case lookup != nil:
		return "the name " + strings.TrimSuffix(lookup.Name, ".") + " cannot be looked up"
	case errors.As(err, &op) && op.Addr == nil: // a TLS alert
		return op.Op + ": " + op.Err.Error()
	case op != nil:
		return op.Addr.String() + " " + disconnected(op)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before a response"
	}
	return err.Error()
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
