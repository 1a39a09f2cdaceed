package operate

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// Proofs see the same log, however much of its data is in the record.
func TestDigestOfLargeLogs(t *testing.T) {
	data := bytes.Repeat([]byte{1}, event.MaxData+500) // which an earlier version kept whole
	made := func(change func(*event.Log)) digest {
		l := &event.Log{Address: common.Address{1}.Bytes(), Topics: [][]byte{common.Hash{2}.Bytes()}}
		change(l)
		return digestOf(l)
	}
	omitted := made(func(l *event.Log) { l.SetData(data) })
	if whole := made(func(l *event.Log) { l.Data = data }); whole != omitted {
		t.Error("the same log with and without its data has two digests")
	}
	for i, other := range []digest{made(func(l *event.Log) { l.SetData(data[1:]) }), made(func(*event.Log) {})} {
		if other == omitted {
			t.Errorf("other data %d has the same digest", i)
		}
	}
}
