package operate

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/event"
)

// Proofs see the same log, however much of its data is in the record, and another one if any field differs that a node
// must return: also if a topic became data, or if the data is the hash that stands for larger data.
func TestDigestOfALog(t *testing.T) {
	word := func(n byte) []byte { return common.Hash{31: n}.Bytes() }
	large := bytes.Repeat([]byte{1}, event.MaxData+500) // which an earlier version kept whole
	made := func(change func(*event.Log)) digest {
		l := &event.Log{
			Address: common.Address{1}.Bytes(), Topics: [][]byte{word(2), word(3)}, Data: word(4), BlockNumber: 5,
			BlockHash: word(6),
			BlockTime: 7, TxHash: word(8), TxIndex: 9, LogIndex: 10,
		}
		change(l)
		return digestOf(l)
	}
	plain, hashed := func(*event.Log) {}, func(l *event.Log) { l.SetData(large) }
	for name, c := range map[string]struct {
		a, b func(*event.Log)
		same bool
	}{
		"large data, kept whole":      {hashed, func(l *event.Log) { l.Data = large }, true},
		"no index of the transaction": {plain, func(l *event.Log) { l.TxIndex = 0 }, true},
		"other large data":            {hashed, func(l *event.Log) { l.SetData(large[1:]) }, false},
		"large data, and its hash":    {hashed, func(l *event.Log) { l.Data = crypto.Keccak256(large) }, false},
		"no data":                     {plain, func(l *event.Log) { l.Data = nil }, false},
		"a topic in the data": {plain,
			func(l *event.Log) { l.Topics, l.Data = l.Topics[:1], append(word(3), word(4)...) }, false},
		"another contract":             {plain, func(l *event.Log) { l.Address, l.Vault = word(1)[12:], l.Address }, false},
		"another block":                {plain, func(l *event.Log) { l.BlockNumber++ }, false},
		"another block of this height": {plain, func(l *event.Log) { l.BlockHash = word(9) }, false},
		"another time":                 {plain, func(l *event.Log) { l.BlockTime++ }, false},
		"another transaction":          {plain, func(l *event.Log) { l.TxHash = word(9) }, false},
		"another place":                {plain, func(l *event.Log) { l.LogIndex++ }, false},
	} {
		if same := made(c.a) == made(c.b); same != c.same {
			t.Errorf("%s: the digests are the same: %t", name, same)
		}
	}
}
