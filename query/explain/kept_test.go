package explain

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestKeptBlocksAreBounded: the most recently used blocks are kept, within the limit of bytes.
func TestKeptBlocksAreBounded(t *testing.T) {
	k := newKept(100)
	hash := func(n byte) common.Hash { return common.Hash{n} }
	for n := range byte(10) {
		k.put(hash(n), &ProvenBlock{}, 30)
		k.get(hash(0)) // keep it in use
	}
	var there []byte
	for n := range byte(10) {
		if k.get(hash(n)) != nil {
			there = append(there, n)
		}
	}
	if string(there) != "\x00\x08\x09" || k.size != 90 || k.blocks.Len() != 3 {
		t.Errorf("the cache has %v, %d bytes", there, k.size)
	}
	k.put(hash(50), &ProvenBlock{}, 101)
	k.put(hash(9), &ProvenBlock{}, 30)
	if k.get(hash(50)) != nil || k.size != 90 {
		t.Errorf("a block that is too long is cached, or a block is cached twice: %d bytes", k.size)
	}
}
