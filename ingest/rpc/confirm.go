package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

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
	again, err := other.OneBlock(ctx, h, proof.Watch(addresses), proof.None) // logs that both endpoints return need no proof
	if err != nil {
		return err
	}
	if again = ours(again); len(again) != len(logs) {
		return fmt.Errorf("%w: block %d (%s) has %d logs of the vaults, but %d at %s", ErrDisagree, h.Number, h.Hash, len(logs), len(again), other.Name)
	}
	for i, l := range again {
		if !same(l, logs[i].GetLog()) {
			return fmt.Errorf("%w: log %d of block %d (%s) is another one at %s", ErrDisagree, l.GetLogIndex(), h.Number, h.Hash, other.Name)
		}
	}
	return nil
}

// same reports whether two logs are equal, ignoring the transaction index if one of the nodes did not return it.
func same(a, b *event.Log) bool {
	if a.TxIndex == b.TxIndex {
		return proto.Equal(a, b)
	}
	twin := proto.CloneOf(a)
	twin.TxIndex = b.TxIndex
	return (a.TxIndex == 0 || b.TxIndex == 0) && proto.Equal(twin, b)
}

// awaitBlock reads a block, and waits a moment for it if the endpoint does not have it yet.
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
