package explain

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/node"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/contracts"
)

//go:embed hashes.sql
var sqlHashes string

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

// prove adds to each event what proves it. Blocks are asked for one after the other, and
// one at a time is held.
func (e *Explainer) prove(r *httpapi.Request, events []eventJSON, hashes map[uint64]common.Hash) error {
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
		seq, _ := strconv.ParseUint(at.Seq, 10, 64)
		hash, known := hashes[seq]
		if !known {
			return httpapi.Internal(fmt.Errorf("the spine has no record %d of a log", seq))
		}
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
			return httpapi.Internal(fmt.Errorf("log %d of block %s (%s) is not the %s of record %d: `navlog verify --receipts` says what else is not the chain's", at.LogIndex, at.BlockNumber, hash, at.Kind, seq))
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

// hashesOf gives the hashes of the blocks of some events, by seq.
func hashesOf(ctx context.Context, p *pin.Pin, events []eventJSON) (map[uint64]common.Hash, error) {
	if len(events) == 0 {
		return nil, nil
	}
	type row struct {
		Seq  uint64 `ch:"seq"`
		Hash string `ch:"hash"`
	}
	var blocks, seqs []string // decimal numbers of our own
	for _, e := range events {
		blocks, seqs = append(blocks, e.BlockNumber), append(seqs, e.Seq)
	}
	question := strings.NewReplacer("{blocks}", strings.Join(blocks, ","), "{seqs}", strings.Join(seqs, ",")).Replace(sqlHashes)
	rows, err := pin.Ask[row](ctx, p, question, nil)
	if err != nil {
		return nil, err
	}
	out := make(map[uint64]common.Hash, len(rows))
	for _, r := range rows {
		out[r.Seq] = common.BytesToHash([]byte(r.Hash))
	}
	return out, nil
}
