package catchup

import (
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
)

// Both ends of a part are compared with the adjacent blocks, if these are known: the part before it, the head, and the
// window.
func TestPartsThatDoNotFollow(t *testing.T) {
	hash := func(chain, number uint64) common.Hash {
		return common.BigToHash(new(big.Int).SetUint64(1000*chain + number))
	}
	block := func(chain, number uint64) *rpc.Header {
		return &rpc.Header{Number: number, Hash: hash(chain, number), Parent: hash(chain, number-1)}
	}
	of := func(chain, from, to uint64) *rpc.Part {
		return &rpc.Part{From: from, To: to, Parent: hash(chain, from-1), Blocks: []*rpc.Header{block(chain, to)}}
	}
	unknown := of(2, 11, 20)
	unknown.Parent = common.Hash{}
	known := &writer.State{Head: block(1, 50)}
	for number := uint64(30); number <= 50; number++ {
		record := writer.BlockFact(block(1, number))
		record.Seq = number
		known.Window.Apply(chainlog.Entry{Record: record})
	}
	for name, c := range map[string]struct {
		state    *writer.State
		appended *rpc.Header
		parts    []*rpc.Part
		follows  bool
	}{
		"the same chain": {&writer.State{}, nil, []*rpc.Part{of(1, 1, 10), of(1, 11, 20), of(1, 21, 30)},
			true},
		"another chain in one commit": {&writer.State{}, nil, []*rpc.Part{of(1, 1, 10), of(1, 11, 20), of(2, 21, 30)},
			false},
		"does not follow the appended block": {&writer.State{}, block(1, 10), []*rpc.Part{of(2, 11, 20)}, false},
		"not adjacent to the appended block": {&writer.State{}, block(1, 10), []*rpc.Part{of(2, 15, 20)}, true},
		"parent unknown":                     {&writer.State{}, block(1, 10), []*rpc.Part{unknown}, true},
		"above the head":                     {known, nil, []*rpc.Part{of(2, 51, 60)}, false},
		"above the head, same chain":         {known, nil, []*rpc.Part{of(1, 51, 60)}, true},
		"above a block of the window":        {known, nil, []*rpc.Part{of(2, 41, 41)}, false},
		"up to a block of the window":        {known, nil, []*rpc.Part{of(2, 20, 30)}, false},
		"up to the head":                     {known, block(1, 30), []*rpc.Part{of(1, 31, 40), of(1, 41, 50)}, true},
	} {
		s, before, err := &Catchup{writer: &writer.Writer{State: c.state}}, c.appended, error(nil)
		for _, p := range c.parts {
			if err = s.checkContinues(p, before); err != nil {
				break
			}
			before = p.End()
		}
		if (err == nil) != c.follows {
			t.Errorf("%s: the parts return %v", name, err)
		}
	}

	// A commit with such a part is rejected before it begins: this session has no client for a transaction.
	s := &Catchup{writer: &writer.Writer{State: &writer.State{}}}
	if err := s.appendParts(t.Context(), []*rpc.Part{of(1, 1, 10), of(2, 11, 20)}, nil, 20); err == nil ||
		!strings.Contains(err.Error(), "block 11 was given with the parent") {
		t.Errorf("parts of two chains return %v", err)
	}
}

// Ingest ends after several attempts at a block that no endpoint proves, with an error that says what to do. Another
// block, or another error, restarts the count.
func TestUnprovenReads(t *testing.T) {
	var d unprovenReads
	for try := 1; try <= 2*maxUnprovenReads; try++ {
		err := d.check(fmt.Errorf("read: %w", &rpc.UnprovenError{Block: 7, Node: "a"}), 2)
		if writer.IsPermanent(err) != (try == 2*maxUnprovenReads) {
			t.Fatalf("attempt %d returns %v", try, err)
		}
		for _, words := range []string{"block 7 ", "pruned or lost", "archive node"} {
			if writer.IsPermanent(err) && !strings.Contains(err.Error(), words) {
				t.Errorf("the error lacks %q: %v", words, err)
			}
		}
	}
	if err := d.check(&rpc.UnprovenError{Block: 8}, 1); writer.IsPermanent(err) || d.count != 1 {
		t.Errorf("another block is refused at once: %v", err)
	}
	if err := d.check(io.EOF, 1); err != io.EOF || d.count != 1 {
		t.Errorf("another error is returned as %v and counted", err)
	}
}

// If a late vault is too far below the window to join, the error names the setting to change.
func TestLateVaultFarBelowTheWindow(t *testing.T) {
	s := &Catchup{writer: &writer.Writer{Options: writer.Options{Window: 7}, State: &writer.State{}}}
	s.writer.State.Window.Apply(chainlog.Entry{Record: writer.BlockFact(&rpc.Header{Number: 2*maxBelowWindow + 1})})
	if _, err := s.missedBlocks(t.Context(), nil, maxBelowWindow); err == nil ||
		!strings.Contains(err.Error(), "chain.window, which is 7") {
		t.Errorf("far below the window: %v", err)
	}
}
