package proof

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// pattern is the three bit positions that a value sets in a bloom.
type pattern [3]uint16

func patternOf(value []byte) (m pattern) {
	hash := crypto.Keccak256(value)
	for i := range m {
		m[i] = binary.BigEndian.Uint16(hash[2*i:]) & (8*types.BloomByteLength - 1)
	}
	return m
}

func (m pattern) in(b *types.Bloom) bool {
	for _, bit := range m {
		if b[types.BloomByteLength-1-bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

func (m pattern) add(b *types.Bloom) {
	for _, bit := range m {
		b[types.BloomByteLength-1-bit/8] |= 1 << (bit % 8)
	}
}

// Patterns caches the patterns of values that recur: addresses and first topics.
type Patterns map[string]pattern

func (m Patterns) of(value []byte) pattern {
	have, known := m[string(value)]
	if !known {
		have = patternOf(value)
		m[string(value)] = have
	}
	return have
}

// Holds reports whether a bloom contains a log's address and its first topic.
func (m Patterns) Holds(b *types.Bloom, l *event.Log) bool {
	return m.of(l.Address).in(b) && (len(l.Topics) == 0 || m.of(l.Topics[0]).in(b))
}

// bloomOf returns the bloom of a block that has exactly these logs.
func bloomOf(logs []*event.Log) (b types.Bloom) {
	known := Patterns{}
	for _, l := range logs {
		known.of(l.Address).add(&b)
		for i, topic := range l.Topics {
			if i == 0 {
				known.of(topic).add(&b)
			} else {
				patternOf(topic).add(&b)
			}
		}
	}
	return b
}

// within reports whether every bit of a is set in b.
func within(a, b *types.Bloom) bool {
	for i := range a {
		if a[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// Sparse reports whether a bloom is sparse enough to be useful: if more than half of its bits are set, it matches a
// random value with a probability of more than an eighth.
func Sparse(b *types.Bloom) bool {
	set := 0
	for at := 0; at < len(b); at += 8 {
		set += bits.OnesCount64(binary.BigEndian.Uint64(b[at:]))
	}
	return set <= 4*types.BloomByteLength
}

// Watched holds the values that are looked up in blooms: the vaults' addresses, and the events that navlog knows.
type Watched struct {
	Addresses []common.Address
	ofAddress []pattern
}

func Watch(addresses []common.Address) *Watched {
	w := &Watched{Addresses: addresses}
	for i := range addresses {
		w.ofAddress = append(w.ofAddress, patternOf(addresses[i][:]))
	}
	return w
}

// knownEvents are the first topics of the reference contracts' events. Events of other mappings are not looked up:
// nearly every bloom contains some of them, such as Transfer, and each false positive costs a call.
var knownEvents = func() (events []struct {
	topic   common.Hash
	pattern pattern
}) {
	for _, known := range mapping.Reference().Events() {
		topic := known.Topic
		events = append(events, struct {
			topic   common.Hash
			pattern pattern
		}{topic, patternOf(topic[:])})
	}
	return events
}()

// MayHold reports whether a block may have logs of a vault.
func (w *Watched) MayHold(b *types.Bloom) bool {
	for _, m := range w.ofAddress {
		if m.in(b) {
			return true
		}
	}
	return false
}

// Lacks reports whether a bloom contains a vault that has no log in logs, or a vault and an event that has none. It can
// be wrong: blooms have false positives.
func (w *Watched) Lacks(b *types.Bloom, logs []*event.Log) bool {
	held := false
	for i, m := range w.ofAddress {
		if !m.in(b) {
			continue
		}
		held = true
		if !slices.ContainsFunc(logs, func(l *event.Log) bool { return common.Address(l.Address) == w.Addresses[i] }) {
			return true
		}
	}
	if !held {
		return false
	}
	for _, e := range knownEvents {
		if e.pattern.in(b) && !slices.ContainsFunc(logs, func(l *event.Log) bool { return len(l.Topics) > 0 && common.Hash(l.Topics[0]) == e.topic }) {
			return true
		}
	}
	return false
}
