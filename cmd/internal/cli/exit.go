package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// A Code is the exit code of the process, from which a script sees what to do next. docs/operations.md lists the codes
// for operators.
type Code int

// Exit codes. An error without a code gets Failed.
const (
	Done          Code = 0
	Failed        Code = 1
	Usage         Code = 2 // the command line itself
	Configuration Code = 3 // the file, or the environment
	Unreachable   Code = 4 // an engine or a node does not respond, or an engine rejects the login
	Different     Code = 5 // two things that must be equal are not
	Frozen        Code = 6 // nothing is appended until an operator decides
	Unproven      Code = 7 // what could be compared is equal, but something that matters could not be compared
)

// coded is an error with an exit code.
type coded struct {
	error
	code Code
}

func (e coded) Unwrap() error { return e.error }

// With attaches the code to an error; nil stays nil.
func (c Code) With(err error) error {
	if err == nil {
		return nil
	}
	return coded{err, c}
}

// LoginRefused reports whether ClickHouse rejected the user or the password.
func LoginRefused(err error) bool {
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && e.Code == 516
}

// CodeOf returns the exit code of err. Without an explicit code, these are Unreachable: network errors, rejected logins
// (PostgreSQL reports both as one kind of error), a peer that does not respond in time, ends the connection or has no
// valid certificate, and nodes, or the proxies in front of them, that respond with 5xx. A node of another chain is a
// mistake in the configuration. A change whose outcome is unknown is Failed.
func CodeOf(err error) Code {
	if err == nil {
		return Done
	}
	if e, ok := errors.AsType[coded](err); ok {
		return e.code
	}
	switch {
	case is[*registry.UnknownOutcomeError](err):
		return Failed // a script that runs the command again could do its change twice
	case is[*contracts.OtherChainError](err):
		return Configuration
	case is[*pgconn.ConnectError](err), is[*tls.CertificateVerificationError](err), LoginRefused(err):
		return Unreachable
	}
	for _, unreachable := range []error{readmodel.ErrUnreachable, contracts.ErrNoneAnswers, kerr.SaslAuthenticationFailed,
		http.ErrSchemeMismatch, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, unreachable) {
			return Unreachable
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "FATAL" { // it ends the session
		return Unreachable
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op != "listen" { // a port in use is not an unreachable peer
		return Unreachable
	}
	if e, ok := errors.AsType[rpc.HTTPError](err); ok && e.StatusCode >= http.StatusInternalServerError {
		return Unreachable
	}
	return Failed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
