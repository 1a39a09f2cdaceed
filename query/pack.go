package query

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Checkpoints are kept packed: there is room for three to four times as many, and
// to unpack one takes a fraction of what a question does. Numbers are varints
// (encoding/binary), in the order of the chain what they are more than the one
// before.

// packed is a state as bytes, from which take removes what was added.
type packed []byte

func (p packed) add(v uint64) packed { return binary.AppendUvarint(p, v) }

func (p packed) addSigned(v int64) packed { return binary.AppendVarint(p, v) }

func (p packed) addBytes(b []byte) packed { return append(p.add(uint64(len(b))), b...) }

func (p packed) addWide(v *uint256.Int) packed { return p.addBytes(v.Bytes()) }

func (p *packed) take() uint64 {
	v, n := binary.Uvarint(*p)
	*p = (*p)[n:]
	return v
}

func (p *packed) takeSigned() int64 {
	v, n := binary.Varint(*p)
	*p = (*p)[n:]
	return v
}

func (p *packed) takeBytes() []byte {
	n := p.take()
	b := (*p)[:n]
	*p = (*p)[n:]
	return b
}

func (p *packed) takeWide() (v uint256.Int) {
	v.SetBytes(p.takeBytes())
	return v
}

// packStanding puts the users of the vaults before their queue.
func packStanding(s standing) packed {
	out := packed{}.add(uint64(len(s.users)))
	for _, vault := range slices.SortedFunc(maps.Keys(s.users), common.Address.Cmp) {
		out = out.addBytes(vault[:]).add(uint64(s.users[vault]))
	}
	return append(out, packBuckets(s.queue)...)
}

func unpackStanding(p packed) standing {
	n := p.take()
	s := standing{users: make(map[common.Address]int64, n)}
	for range n {
		vault := toAddress(string(p.takeBytes()))
		s.users[vault] = int64(p.take())
	}
	s.queue = unpackBuckets(p)
	return s
}

// byVault are the parts of a list, which is sorted by vault, that are of one vault each.
func byVault[T any](list []T, vault func(T) string) iter.Seq2[string, []T] {
	return func(yield func(string, []T) bool) {
		for from, to := 0, 1; from < len(list); from, to = to, to+1 {
			of := vault(list[from])
			for to < len(list) && vault(list[to]) == of {
				to++
			}
			if !yield(of, list[from:to]) {
				return
			}
		}
	}
}

// packBuckets goes through the vaults, their buckets and the waits of these.
func packBuckets(all buckets) packed {
	var out packed
	keys := slices.SortedFunc(maps.Keys(all), bucketKey.compare)
	for vault, of := range byVault(keys, func(k bucketKey) string { return k.vault }) {
		out = out.addBytes([]byte(vault)).add(uint64(len(of)))
		number := uint64(0)
		for _, key := range of {
			it := all[key]
			out = out.add(key.number - number).addWide(&it.queued).add(uint64(it.unfunded)).addWide(&it.amount)
			was := uint64(0)
			for _, block := range it.made {
				out, was = out.addSigned(int64(block-was)), block
			}
			out = out.add(uint64(len(it.waits)))
			for _, w := range it.waits {
				out = out.add(w.index % bucketSize).add(w.expires).addWide(&w.amount)
			}
			number = key.number
		}
	}
	return out
}

func unpackBuckets(p packed) buckets {
	out := make(buckets)
	for len(p) > 0 {
		key := bucketKey{vault: string(p.takeBytes())}
		for range p.take() {
			key.number += p.take()
			it := bucket{queued: p.takeWide(), unfunded: int64(p.take()), amount: p.takeWide()}
			it.made = make([]uint64, size(&it.queued))
			was := uint64(0)
			for i := range it.made {
				was += uint64(p.takeSigned())
				it.made[i] = was
			}
			if n := p.take(); n > 0 {
				it.waits = make([]wait, n)
			}
			for i := range it.waits {
				it.waits[i] = wait{index: key.number*bucketSize + p.take(), expires: p.take(), amount: p.takeWide()}
			}
			out[key] = it
		}
	}
	return out
}

func packPlaces(places []rankedBucket) packed {
	out, was := packed{}, uint32(0)
	for _, b := range places {
		out = out.add(uint64(b.Bucket - was)).add(uint64(b.Users))
		was = b.Bucket
	}
	return out
}

func unpackPlaces(p packed) []rankedBucket {
	out, was := make([]rankedBucket, 0, len(p)/2), uint32(0)
	for len(p) > 0 {
		was += uint32(p.take())
		out = append(out, rankedBucket{Bucket: was, Users: int32(p.take())})
	}
	return out
}
