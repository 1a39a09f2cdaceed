package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// UnprovenError means that the logs that a node returned cannot be all logs of a block.
type UnprovenError struct {
	Block  uint64
	hash   common.Hash
	Node   string
	reason string
}

func (e *UnprovenError) Error() string {
	return fmt.Sprintf("the logs of block %d (%s) at %s are not those of the block's header: %s", e.Block, e.hash, e.Node,
		e.reason)
}

// HasBloom returns an error for a header without a bloom. Call it before logs are proven by the header.
func (n *Node) HasBloom(h *Header) error {
	if !h.NoBloom {
		return nil
	}
	return fmt.Errorf("%s returns the header of block %d without logsBloom, which proves logs: use an endpoint that "+
		"returns it, or set chain.proof to none", n.Name, h.Number)
}

// Native returns logs if the header's bloom contains each of them, and an error otherwise.
func (n *Node) Native(h *Header, logs []*event.Log) ([]*event.Log, error) {
	for _, l := range logs {
		switch {
		case h.NoBloom:
			return nil, n.HasBloom(h)
		case proof.Holds(&h.Bloom, l):
		case h.Bloom == (types.Bloom{}):
			return nil, fmt.Errorf("the header of block %d at %s has an empty logsBloom although the block has logs: if the "+
				"chain does not fill it, set chain.proof to none", h.Number, n.Name)
		default:
			return nil, fmt.Errorf("%s returned a log of 0x%x in block %d (log %d) that the block's logsBloom does not contain",
				n.Name, l.Address, h.Number, l.LogIndex)
		}
	}
	return logs, nil
}

// logsOfAddresses returns the logs of the given addresses or, if there are none, all.
func logsOfAddresses(logs []*event.Log, addresses []common.Address) []*event.Log {
	return slices.DeleteFunc(logs, func(l *event.Log) bool {
		return len(addresses) > 0 && !slices.Contains(addresses, common.Address(l.Address))
	})
}

// proveAll returns the vaults' logs in a block, and proves that there are no more: all logs of the block, from every
// contract, must make up its bloom. If a response proves nothing, the node is called again, since one address may stand
// for several backends, and then by the other method: nodes do not take receipts from the same index.
func (n *Node) proveAll(ctx context.Context, h *Header, vaults []common.Address) ([]*event.Log, error) {
	if err := n.HasBloom(h); err != nil {
		return nil, err
	}
	var why string
	for try := range 3 {
		read := n.logsIn
		if try == 2 {
			read = n.logsByHash
			if !n.health.logsPaused() {
				read = n.receipts
			}
		}
		all, err := read(ctx, h, nil)
		switch {
		case err != nil && why == "":
			return nil, err
		case err != nil:
			return nil, &UnprovenError{h.Number, h.Hash, n.Name, why}
		}
		if why = proof.Incomplete(&h.Bloom, all); why == "" {
			return n.Native(h, logsOfAddresses(all, vaults))
		}
	}
	return nil, &UnprovenError{h.Number, h.Hash, n.Name, why}
}

// logsIn reads the logs of a block by its hash, from the given addresses or, if there are none, from all. If the node
// rejects that because there are too many, or does not respond, it takes them from the receipts; after a timeout it
// reads the receipts first for a while.
func (n *Node) logsIn(ctx context.Context, h *Header, addresses []common.Address) ([]*event.Log, error) {
	var all []*event.Log
	var why error
	silent := n.health.logsPaused()
	if silent {
		if all, why = n.receipts(ctx, h, addresses); why == nil {
			return all, nil
		}
	}
	logs, err := n.logsByHash(ctx, h, addresses)
	refusal := refusalOf(ctx, err).kind
	if !refusal.splits() {
		return logs, err
	}
	if !silent {
		all, why = n.receipts(ctx, h, addresses)
	}
	switch {
	case why == nil:
		return all, nil
	case refusal == tooMuch:
		return nil, n.overLimit(h, errors.Join(err, why))
	}
	return nil, err
}

// errOverLimit means that a node returns the logs of a single block through none of its methods.
var errOverLimit = errors.New("has more logs than the endpoint returns in one response, by any method: " +
	"add an endpoint without such a limit to chain.rpc, such as a node of your own")

func (n *Node) overLimit(h *Header, err error) error {
	return fmt.Errorf("block %d at %s %w (%w)", h.Number, n.Name, errOverLimit, err)
}

// OneBlock reads the vaults' logs in a block: by its hash, from the receipts, or for one vault after the other. proven
// reports whether the header proves that there are no more.
func (n *Node) OneBlock(
	ctx context.Context, h *Header, vaults []common.Address, level proof.Level,
) (logs []*event.Log, proven bool, err error) {
	if level == proof.Headers {
		logs, err = n.proveAll(ctx, h, vaults)
		proven = h.Sealed
	} else {
		logs, err = n.logsIn(ctx, h, vaults)
	}
	if errors.Is(err, errOverLimit) || level != proof.Headers && refusalOf(ctx, err).kind.splits() {
		logs, err = n.vaultByVault(ctx, h, vaults, level)
		proven = false
	}
	return logs, proven, err
}

// vaultByVault reads the logs of a block for one vault after the other. Without the logs of all other contracts they
// prove nothing. They are accepted if they are consistent with each other, and if the bloom contains them and shows no
// others. A bloom that is too full to be useful shows nothing: then they are read twice, because a backend that lags
// has no logs of the block.
func (n *Node) vaultByVault(ctx context.Context, h *Header, vaults []common.Address,
	level proof.Level) (logs []*event.Log, err error) {
	logs, err = n.eachVault(ctx, h, vaults, nil)
	if err != nil || level == proof.None {
		return logs, err
	}
	if proof.Lacks(&h.Bloom, vaults, logs) {
		if proof.Sparse(&h.Bloom) {
			return nil, &UnprovenError{h.Number, h.Hash, n.Name,
				"the header's logsBloom contains more than the logs that were read vault by vault"}
		}
		if logs, err = n.eachVault(ctx, h, vaults, logs); err != nil {
			return nil, err
		}
	}
	return n.Native(h, logs)
}

// eachVault reads the logs of a block for one vault after the other, and adds them to those that were read before.
func (n *Node) eachVault(
	ctx context.Context, h *Header, vaults []common.Address, logs []*event.Log,
) ([]*event.Log, error) {
	for _, address := range vaults {
		some, err := n.logsByHash(ctx, h, []common.Address{address})
		switch kind := refusalOf(ctx, err).kind; {
		case kind == tooMuch, kind == unclear:
			return nil, n.overLimit(h, err)
		case err != nil:
			return nil, err
		}
		logs = append(logs, some...)
	}
	a := answer{logs: logs, unsorted: len(logs) > 1}
	if err := a.order(); err != nil {
		return nil, fmt.Errorf("eth_getLogs at %s: %w", n.Name, err)
	}
	return a.logs, nil
}

const (
	// agreementPatience is how long a second endpoint may take to get a block that the first one has; agreementEvery is
	// the pause between checks.
	agreementPatience = 2 * time.Second
	agreementEvery    = 50 * time.Millisecond
)

// ErrDisagree means that two endpoints return different blocks or logs.
var ErrDisagree = errors.New("the endpoints disagree")

// Confirms compares a block and its logs with those of another endpoint. ours selects the logs of addresses that are
// compared.
func (p *Pool) Confirms(ctx context.Context, other *Node, h *Header, addresses []common.Address,
	ours func([]*event.Log) []*event.Log, logs []*event.Record) error {
	theirs, err := p.awaitBlock(ctx, other, h.Number)
	if err != nil {
		return err
	}
	if theirs.Hash != h.Hash {
		return fmt.Errorf("%w: block %d is %s, but %s at %s", ErrDisagree, h.Number, h.Hash, theirs.Hash, other.Name)
	}
	// The hash of a header proves its other fields only on chains whose hashing rule is known.
	if theirs.Time != h.Time || theirs.Parent != h.Parent {
		return fmt.Errorf("%w: block %d (%s) has the time %d and the parent %s, but %d and %s at %s",
			ErrDisagree, h.Number, h.Hash, h.Time, h.Parent, theirs.Time, theirs.Parent, other.Name)
	}
	if len(addresses) == 0 {
		return nil
	}
	again, _, err := other.OneBlock(ctx, h, addresses, proof.None) // logs that both endpoints return need no proof
	if err != nil {
		return err
	}
	if again = ours(again); len(again) != len(logs) {
		return fmt.Errorf("%w: block %d (%s) has %d logs of the vaults, but %d at %s", ErrDisagree, h.Number, h.Hash,
			len(logs), len(again), other.Name)
	}
	for i, l := range again {
		if !equalLogs(l, logs[i].GetLog()) {
			return fmt.Errorf("%w: log %d of block %d (%s) is different at %s", ErrDisagree, l.GetLogIndex(), h.Number, h.Hash,
				other.Name)
		}
	}
	return nil
}

// equalLogs reports whether two logs are equal, ignoring a transaction index that one of the nodes did not return.
func equalLogs(a, b *event.Log) bool {
	if a.TxIndex == b.TxIndex {
		return proto.Equal(a, b)
	}
	indexed := proto.CloneOf(a)
	indexed.TxIndex = b.TxIndex
	return (a.TxIndex == 0 || b.TxIndex == 0) && proto.Equal(indexed, b)
}

func (p *Pool) awaitBlock(ctx context.Context, n *Node, number uint64) (*Header, error) {
	for until := p.clock.now().Add(agreementPatience); ; {
		h, err := n.ByNumber(ctx, number)
		if !errors.Is(err, ErrNoBlock) || p.clock.now().After(until) {
			return h, err
		}
		if err := p.clock.sleep(ctx, agreementEvery); err != nil {
			return nil, err
		}
	}
}
