package explain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/mapping"
)

const (
	// mostProven are the events of a page with proofs: each may be a block of its own.
	mostProven = 20
	// longestProofs bounds the proofs of a page together, in bytes.
	longestProofs = 4 << 20
)

// proofJSON is what proves an event, or why nothing does.
type proofJSON struct {
	BlockHash string `json:"blockHash"`
	*chainproof.Proof
}

// log is the event as the table events names it.
func (e *eventJSON) log() (l ask.Log) {
	l.Seq, _ = strconv.ParseUint(e.Seq, 10, 64) // decimal numbers of our own
	l.Block, _ = strconv.ParseUint(e.BlockNumber, 10, 64)
	return l
}

// prove adds to each event what proves it, from the hash of its block, or why nothing does.
func (e *Explainer) prove(r *serve.Request, vaults []state.Vault, events []eventJSON, hashes []common.Hash) error {
	p, size := prover{vaults: vaults, node: e.Node, pay: func() error { return e.Spend(r) }}, 0
	for i := range events {
		at := &events[i]
		if at.State != "live" {
			at.Unproven = "It was retracted: its block is not in the chain."
			continue
		}
		if at.LogIndex == nil {
			at.Unproven = "It was sampled: a call of the vault at the block with hash " + hashes[i].Hex() + " returns it, and no log proves it."
			continue
		}
		proof, err := p.proof(r.Context, at, hashes[i])
		var unprovable *chainproof.UnprovableError
		switch {
		case errors.As(err, &unprovable):
			at.Unproven = "It cannot be proven: " + unprovable.Why + "."
			continue
		case err != nil:
			return err
		}
		if size += proof.Size(); size > longestProofs {
			return serve.InvalidParameter(serve.Fault{Field: "pageSize", Reason: fmt.Sprintf("the proofs of this page have more than %d MiB: ask for fewer events", longestProofs>>20)})
		}
		at.Proof = &proofJSON{hashes[i].Hex(), proof}
	}
	return nil
}

// names reports whether a log is of the vault and of the contract event that an event is of.
func names(vaults []state.Vault, e *eventJSON, l *types.Log) bool {
	at := slices.IndexFunc(vaults, func(v state.Vault) bool { return v.Written == e.VaultAddress })
	if at < 0 || len(l.Topics) == 0 {
		return false
	}
	vault := &vaults[at]
	if !vault.Mapped.TakesLog(l.Address, l.Topics) {
		return false
	}
	role, _ := vault.Mapped.Role(l.Address)
	number, err := strconv.ParseUint(e.BlockNumber, 10, 64)
	log := mapping.Log{Role: role, Place: mapping.Place(number, *e.LogIndex), Topics: l.Topics}
	event := vault.Mapped.Event(&log)
	return err == nil && event != nil && event.Name == e.Kind
}

// A prover asks for blocks one after the other, and holds one at a time.
type prover struct {
	vaults []state.Vault
	node   *Node
	pay    func() error // for each call of the node
	held   common.Hash  // of block
	block  *ProvenBlock
}

// proof proves an event that is in a block. Its error is *chainproof.UnprovableError where nothing can.
func (p *prover) proof(ctx context.Context, e *eventJSON, hash common.Hash) (*chainproof.Proof, error) {
	var unprovable *chainproof.UnprovableError
	if p.block == nil || p.held != hash {
		block, err := p.node.Block(ctx, hash, p.pay)
		var refused *serve.Failure
		switch {
		case errors.As(err, &refused): // by pay
			return nil, refused
		case errors.As(err, &unprovable):
			return nil, unprovable
		case err != nil:
			return nil, unproven(e.BlockNumber, hash, err)
		}
		p.held, p.block = hash, block
	}
	l, proof, err := p.block.Log(*e.LogIndex)
	switch {
	case errors.As(err, &unprovable):
		return nil, unprovable
	case err != nil:
		return nil, serve.Internal(err)
	case l == nil || !names(p.vaults, e, l):
		return nil, serve.Internal(fmt.Errorf("log %d of block %s (%s) is not the %s of record %s: `navlog verify --receipts` shows what else differs from the chain", *e.LogIndex, e.BlockNumber, hash, e.Kind, e.Seq))
	}
	return proof, nil
}

// unproven is what it means that the node does not prove a block.
func unproven(number string, hash common.Hash, err error) error {
	about := fmt.Sprintf("block %s (%s)", number, hash)
	var wrong *chainproof.WrongError
	lies := func(why string) error {
		return &serve.Failure{Status: http.StatusBadGateway, Code: serve.CodeUnproven, Cause: err,
			Message: "The node that proofs are made from does not prove " + about + ": " + why + "."}
	}
	switch {
	case errors.As(err, &wrong):
		return lies(wrong.Why)
	case errors.Is(err, errNoReceipts), errors.Is(err, errTooLong):
		return lies(err.Error())
	case errors.Is(err, errNoBlock):
		return serve.Unavailable("The node that proofs are made from does not have "+about+": it is behind, or the chain was reorganised.", err)
	}
	return serve.Unavailable("The node for proofs does not respond correctly at the moment.", err)
}
