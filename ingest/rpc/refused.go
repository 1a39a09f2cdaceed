package rpc

import "errors"

// RefusedError says that the configuration, the chain and the log do not
// belong together. Trying again does not help.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}
