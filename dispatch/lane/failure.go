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

// failure is the result of a POST without an answer. Partners read what it says in
// their delivery log: the kind of failure, and their own host or address. What the
// network's errors say of our side, the resolver that was asked and the local
// address of the connection, is in cause alone.
func failure(err error) Result {
	r := Result{Outcome: outcomeNetwork, Cause: err}
	var refusal *guard.Refusal
	var network net.Error
	switch {
	case errors.As(err, &refusal):
		r.Outcome, r.Err = outcomeForbidden, printable.Text(refusal.Error(), printable.Sentence)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		r.Outcome, r.Err = outcomeTimeout, "no answer in time"
	default:
		r.Err = printable.Text(reason(err), printable.Sentence)
	}
	return r
}

// reason is the kind of an error of the transport. What is none of the network
// comes from net/http or crypto/tls and tells of the receiver's bytes only: they
// name its host, never the whole URL, which may hold a token. A name is looked up with
// the dot of the root, which its partner did not write.
func reason(err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "the name " + strings.TrimSuffix(lookup.Name, ".") + " has no address"
	case lookup != nil:
		return "the name " + strings.TrimSuffix(lookup.Name, ".") + " cannot be looked up"
	case errors.As(err, &op) && op.Addr == nil: // an alert of TLS
		return op.Op + ": " + op.Err.Error()
	case op != nil:
		return op.Addr.String() + " " + disconnected(op)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	}
	return err.Error()
}

// disconnected says what became of a connection.
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
