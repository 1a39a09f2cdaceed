package rpc

import "errors"

// RefusedError means that the configuration, the chain and the log contradict each other. A retry does not help.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}
