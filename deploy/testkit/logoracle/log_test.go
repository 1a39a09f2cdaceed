package logoracle

import (
	"fmt"
	"strings"
	"testing"

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
