package contracts

// OtherChainError means that a node does not serve the configured chain. The text says which node and which chain.
type OtherChainError struct{ Text string }

func (e *OtherChainError) Error() string { return e.Text }
