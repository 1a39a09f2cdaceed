package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

const (
	// agreementPatience is how long a second endpoint may take to get a block that
	// the first one has; agreementEvery is the pause between looks.
	agreementPatience = 2 * time.Second
	agreementEvery    = 50 * time.Millisecond
)

// errDisagree says that two endpoints give different blocks or logs.
var errDisagree = errors.New("the endpoints disagree")

// confirms compares a block and its logs with what another endpoint has.
func (p *nodes) confirms(ctx context.Context, other *node, h *header, addresses []common.Address, logs []*event.Record) error {
	theirs, err := p.awaitBlock(ctx, other, h.Number)
	if err != nil {
		return err
	}
	if theirs.Hash != h.Hash {
		return fmt.Errorf("%w: block %d is %s, but %s at %s", errDisagree, h.Number, h.Hash, theirs.Hash, other.name)
	}
	if len(addresses) == 0 {
		return nil
	}
	again, err := other.oneBlock(ctx, h, watch(addresses), ProofNone) // what both give alike needs no proof
	if err != nil {
		return err
	}
	if len(again) != len(logs) {
		return fmt.Errorf("%w: block %d (%s) has %d logs of the vaults, but %d at %s", errDisagree, h.Number, h.Hash, len(logs), len(again), other.name)
	}
	for i, l := range again {
		if !proto.Equal(l, logs[i].GetLog()) {
			return fmt.Errorf("%w: log %d of block %d (%s) is another one at %s", errDisagree, l.GetLogIndex(), h.Number, h.Hash, other.name)
		}
	}
	return nil
}

// awaitBlock reads a block that an endpoint may get in a moment.
func (p *nodes) awaitBlock(ctx context.Context, n *node, number uint64) (*header, error) {
	for until := p.clock.now().Add(agreementPatience); ; {
		h, err := n.byNumber(ctx, number)
		if !errors.Is(err, errNoBlock) || p.clock.now().After(until) {
			return h, err
		}
		if err := p.clock.sleep(ctx, agreementEvery); err != nil {
			return nil, err
		}
	}
}
