package cli

import (
	"errors"
	"net"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
)

// A Code is what the process ends with, so that a script can tell what to do next.
// docs/operations.md lists them for operators.
type Code int

// Codes. An error without a code of its own gets Failed.
const (
	Done          Code = 0
	Failed        Code = 1
	Usage         Code = 2 // the command line itself
	Configuration Code = 3 // the file, or the environment
	Unreachable   Code = 4 // an engine or a node does not answer, or an engine refuses the login
	Different     Code = 5 // two things that must be equal are not
	Frozen        Code = 6 // nothing is appended until an operator decides
	Unproven      Code = 7 // what was compared is equal, and something that matters could not be compared
)

// coded is an error with the code that the process ends with.
type coded struct {
	error
	code Code
}

func (e coded) Unwrap() error { return e.error }

// With gives an error its code; nil stays nil.
func (c Code) With(err error) error {
	if err == nil {
		return nil
	}
	return coded{err, c}
}

// LoginRefused tells whether ClickHouse does not know the user, or the password.
func LoginRefused(err error) bool {
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && e.Code == 516
}

// CodeOf returns the exit code of err. If no code was set, an error of the
// network means that something could not be reached, and so does a login that an
// engine refuses: of PostgreSQL both are one error.
func CodeOf(err error) Code {
	if err == nil {
		return Done
	}
	if e, ok := errors.AsType[coded](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return Unreachable
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op != "listen" { // a port in use is no unreachable peer
		return Unreachable
	}
	if LoginRefused(err) || errors.Is(err, kerr.SaslAuthenticationFailed) {
		return Unreachable
	}
	return Failed
}
