package logoracle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// Each change of a sound log is a fault.
func TestFaults(t *testing.T) {
	sound := func() []*event.Record {
		block := func(number uint64, hash byte) *event.Record_Block {
			return &event.Record_Block{Block: &event.Block{Number: number, Hash: []byte{hash}}}
		}
		log := &event.Record_Log{Log: &event.Log{BlockNumber: 2, BlockHash: []byte{2}}}
		records := []*event.Record{
			{Fact: &event.Record_Vault{Vault: &event.Vault{}}, Boundary: true, Origin: &event.Origin{}},
			{Fact: block(1, 1), Boundary: true},
			{Fact: log},
			{Fact: block(2, 2), Boundary: true},
			{Fact: block(2, 2), Retracts: 4},
			{Fact: log, Retracts: 3},
			{Fact: block(2, 3), Boundary: true},
		}
		for i, r := range records {
			r.Seq, r.ChainId = uint64(i+1), 1
		}
		return records
	}
	for want, change := range map[string]func(r []*event.Record) []*event.Record{
		"":                  func(r []*event.Record) []*event.Record { return r },
		"has seq 4":         func(r []*event.Record) []*event.Record { return append(r[:2:2], r[3:]...) },
		"and chain 2":       func(r []*event.Record) []*event.Record { r[1].ChainId = 2; return r },
		"has the origin":    func(r []*event.Record) []*event.Record { r[0].Origin = nil; return r },
		"is not live":       func(r []*event.Record) []*event.Record { r[4].Retracts = 40; return r },
		"with another fact": func(r []*event.Record) []*event.Record { r[4].Fact = r[1].Fact; return r },
		"the newest comes first": func(r []*event.Record) []*event.Record {
			r[4].Retracts, r[5].Retracts = 3,
				4
			return r
		},
		"leave record 2 of block 1":   func(r []*event.Record) []*event.Record { r[6].GetBlock().Number = 1; return r },
		"has the shape l":             func(r []*event.Record) []*event.Record { r[2].Boundary = true; return r },
		"in the middle of a unit":     func(r []*event.Record) []*event.Record { return r[:6] },
		"leave record 3 of block 2 l": func(r []*event.Record) []*event.Record { return append(r[:5:5], r[6]) },
	} {
		var faults []string
		l := Log{ChainID: 1, Fault: func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }}
		var records []*kgo.Record
		for _, r := range change(sound()) {
			value, err := proto.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, &kgo.Record{Value: value})
		}
		l.Fold(records)
		if all := strings.Join(faults, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("found %q, want %q", all, want)
		}
		if live := len(l.Live); want == "" && live != 3 {
			t.Errorf("%d records are live, want 3", live)
		}
	}
}

// A log that is missing, twice, another one, or of a contract that is not a vault is a fault.
func TestCompare(t *testing.T) {
	vault, other := common.Address{1}, common.Address{2}
	at := func(of common.Address, block uint64) *event.Log {
		return &event.Log{Address: of[:], BlockNumber: block}
	}
	changed := at(vault, 2)
	changed.Data = []byte{1}
	for _, c := range []struct {
		live          []*event.Log
		lost, doubled int
		faults        string
	}{
		{live: []*event.Log{at(vault, 1), at(vault, 2)}},
		{live: []*event.Log{at(vault, 1)}, lost: 1, faults: "the log has nothing"},
		{live: []*event.Log{at(vault, 1), at(vault, 2), at(vault, 2)}, doubled: 1, faults: "the chain nothing"},
		{live: []*event.Log{at(vault, 1), at(vault, 3)}, lost: 1, doubled: 1, faults: "block 3"},
		{live: []*event.Log{at(vault, 2), at(vault, 1)}, faults: "at 0 the log has log 0 of block 2"},
		{live: []*event.Log{at(vault, 1), changed}, faults: "at 1"},
		{live: []*event.Log{at(vault, 1), at(vault, 2), at(other, 1)}, doubled: 1, faults: other.String()},
	} {
		faults := ""
		l := Log{Live: map[uint64]*event.Record{}, Fault: func(f string, a ...any) { faults += fmt.Sprintf(f, a...) }}
		for i, log := range c.live {
			seq := uint64(i + 1)
			l.Live[seq] = &event.Record{Seq: seq, Fact: &event.Record_Log{Log: log}}
		}
		live, lost, doubled := l.Compare(map[common.Address][]*event.Log{vault: {at(vault, 1), at(vault, 2)}})
		if live != len(c.live) || lost != c.lost || doubled != c.doubled || !strings.Contains(faults, c.faults) ||
			(faults == "") != (c.faults == "") {
			t.Errorf("%v: %d live, %d lost, %d doubled: %s", c.live, live, lost, doubled, faults)
		}
	}
}
