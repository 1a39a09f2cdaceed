package explain

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/blocks"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/node"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/contracts"
)

const (
	// mostProven are the events of a page with proofs: each may be a block of its own.
	mostProven = 20
	// longestProofs bounds the proofs of a page together, in bytes.
	longestProofs = 4 << 20
	// provenAtOnce are the pages that are proven at once: each holds the receipts of a block.
	provenAtOnce = 4
)

// proofJSON is what proves an event, or why nothing does.
type proofJSON struct {
	BlockHash string `json:"blockHash"`
	*chainproof.Proof
}

// logsOf are events as the spine names them.
func logsOf(events []eventJSON) []blocks.Log {
	out := make([]blocks.Log, len(events))
	for i := range events { // decimal numbers of our own
		out[i].Seq, _ = strconv.ParseUint(events[i].Seq, 10, 64)
		out[i].Block, _ = strconv.ParseUint(events[i].BlockNumber, 10, 64)
	}
	return out
}

// prove adds to each event what proves it, from the hash of its block. Blocks are asked for one after the other, and
// one at a time is held.
func (e *Explainer) prove(r *httpapi.Request, events []eventJSON, hashes []common.Hash) error {
	release, err := e.places.Acquire(r)
	if err != nil {
		return err
	}
	defer release()
	var held common.Hash
	var block *chainproof.Block
	size := 0
	for i := range events {
		at := &events[i]
		if at.State != "live" {
			at.Unproven = "It was taken back: its block is not in the chain."
			continue
		}
		hash := hashes[i]
		var unprovable *chainproof.UnprovableError
		if block == nil || held != hash {
			block, err = e.Node.Block(r.Context, hash)
			switch {
			case errors.As(err, &unprovable):
				at.Unproven = "It cannot be proven: " + unprovable.Why + "."
				continue
			case err != nil:
				return unproven(at.BlockNumber, hash, err)
			}
			held = hash
		}
		l, proof, err := block.Log(at.LogIndex)
		switch {
		case errors.As(err, &unprovable):
			at.Unproven = "It cannot be proven: " + unprovable.Why + "."
			continue
		case err != nil:
			return httpapi.Internal(err)
		case l == nil || l.Address != common.HexToAddress(at.VaultAddress) || len(l.Topics) == 0 || contracts.KindOf(l.Topics[0]).String() != at.Kind:
			return httpapi.Internal(fmt.Errorf("log %d of block %s (%s) is not the %s of record %s: `navlog verify --receipts` says what else is not the chain's", at.LogIndex, at.BlockNumber, hash, at.Kind, at.Seq))
		}
		if size += proof.Size(); size > longestProofs {
			return httpapi.InvalidParameter(httpapi.Fault{Field: "pageSize", Reason: fmt.Sprintf("the proofs of this page have more than %d MiB: ask for fewer events", longestProofs>>20)})
		}
		at.Proof = &proofJSON{hash.Hex(), proof}
	}
	return nil
}

// unproven is what it means that the node does not prove a block.
func unproven(number string, hash common.Hash, err error) error {
	about := fmt.Sprintf("block %s (%s)", number, hash)
	var wrong *chainproof.WrongError
	lies := func(why string) error {
		return &httpapi.Failure{Status: http.StatusBadGateway, Code: httpapi.CodeUnproven, Cause: err,
			Message: "The node that proofs are made from does not prove " + about + ": " + why + "."}
	}
	switch {
	case errors.As(err, &wrong):
		return lies(wrong.Why)
	case errors.Is(err, node.ErrNoReceipts), errors.Is(err, node.ErrTooLong):
		return lies(err.Error())
	case errors.Is(err, node.ErrNoBlock):
		return httpapi.Unavailable("The node that proofs are made from does not have "+about+": it is behind, or the chain was reorganised.", err)
	}
	return httpapi.Unavailable("The node that proofs are made from does not answer as it should at the moment.", err)
}
