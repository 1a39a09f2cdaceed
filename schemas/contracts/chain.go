package contracts

import "errors"

// ErrNoneAnswers is in the errors of calls for which every node of chain.rpc failed.
var ErrNoneAnswers = errors.New("no endpoint of chain.rpc answers; is the node up and the URL right?")

// OtherChainError means that a node does not serve the configured chain. The text says which node and which chain.
type OtherChainError struct{ Text string }

func (e *OtherChainError) Error() string { return e.Text }
