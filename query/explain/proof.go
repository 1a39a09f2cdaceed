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
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// mostProven is the maximum number of events on a page with proofs: each may be in another block.
	mostProven = 20
	// longestProofs is the maximum size of all proofs of a page together, in bytes.
	longestProofs = 4 << 20
)

// proofJSON is the proof that an event is in its block. An event without one has a reason instead (eventJSON.Unproven).
type proofJSON struct {
	BlockHash string `json:"blockHash"`
	*chainproof.Proof
}

// liveHashes returns the hashes of the blocks of those events that are live.
func liveHashes(ctx context.Context, p *ask.Pin, events []eventJSON) ([]common.Hash, error) {
	var logs []ask.InChain
	for i := range events {
		if e := &events[i]; e.State == live {
			block, _ := strconv.ParseUint(e.BlockNumber, 10, 64) // navlog has formatted it
			log := ask.InChain{Block: block, LogIndex: readmodel.SampleIndex}
			if e.LogIndex != nil {
				log.LogIndex = *e.LogIndex
			}
			logs = append(logs, log)
		}
	}
	return ask.LiveBlockHashes(ctx, p, logs)
}

// prove adds to each event its proof, or the reason why it has none. hashes are those of the blocks of live events.
func (e *Explainer) prove(r *serve.Request, vaults []state.Vault, events []eventJSON, hashes []common.Hash) error {
	size := 0
	for i := range events {
		at := &events[i]
		if at.State != live {
			at.Unproven = "It was retracted: its block is not in the chain."
			continue
		}
		hash := hashes[0]
		hashes = hashes[1:]
		if at.LogIndex == nil {
			at.Unproven = "It was sampled: a call of the vault at the block with hash " + hash.Hex() +
				" returns it, and no log proves it."
			continue
		}
		proof, err := e.proof(r, vaults, at, hash)
		var unprovable *chainproof.UnprovableError
		switch {
		case errors.As(err, &unprovable):
			at.Unproven = "It cannot be proven: " + unprovable.Why + "."
			continue
		case err != nil:
			return err
		}
		if size += proof.Size(); size > longestProofs {
			return serve.InvalidParameter(serve.Fault{Field: "pageSize",
				Reason: fmt.Sprintf("the proofs of this page have more than %d MiB: ask for fewer events", longestProofs>>20)})
		}
		at.Proof = &proofJSON{hash.Hex(), proof}
	}
	return nil
}

// names reports whether a log of the chain belongs to the vault of an event, and has the same contract event.
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

// proof returns the proof of an event in the block with a hash. The error is a *chainproof.UnprovableError if the chain
// has no data to prove it with.
func (e *Explainer) proof(
	r *serve.Request, vaults []state.Vault, at *eventJSON, hash common.Hash,
) (*chainproof.Proof, error) {
	block, err := e.Node.Block(r.Context, hash, func() error { return e.Spend(r) })
	var unprovable *chainproof.UnprovableError
	var refused *serve.Failure
	switch {
	case errors.As(err, &refused): // Spend refused the call
		return nil, refused
	case errors.As(err, &unprovable):
		return nil, unprovable
	case err != nil:
		return nil, unproven(at.BlockNumber, hash, err)
	}
	l, proof, err := block.Log(*at.LogIndex)
	switch {
	case errors.As(err, &unprovable):
		return nil, unprovable
	case err != nil:
		return nil, serve.Internal(err)
	case l == nil || !names(vaults, at, l):
		return nil, serve.Internal(fmt.Errorf("log %d of block %s (%s) is not the %s of record %s: `navlog verify "+
			"--receipts` shows what else differs from the chain", *at.LogIndex, at.BlockNumber, hash, at.Kind, at.Seq))
	}
	return proof, nil
}

// unproven returns the error response for a block that the node did not prove: 502 if its response cannot prove it, and
// 503 if a later one may.
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
		return serve.Unavailable("The node that proofs are made from does not have "+about+
			": it is behind, or the chain was reorganised.", err)
	}
	return serve.Unavailable("The node for proofs does not respond correctly at the moment.", err)
}
