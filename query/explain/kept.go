package explain

import (
	"container/list"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
)

// keptBytes limits the cache of proven blocks, measured by the length of the node's responses: a few hundred blocks
// of Ethereum mainnet. In memory they take about twice that.
const keptBytes = 64 << 20

// ProvenBlock is a proven block. It is safe for concurrent use.
type ProvenBlock struct {
	mu     sync.Mutex // go-ethereum's trie is not safe for concurrent use
	proven *chainproof.Block
}

// Log returns the log with an index in the block, and its proof: see chainproof.Block.
func (b *ProvenBlock) Log(index uint32) (*types.Log, *chainproof.Proof, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proven.Log(index)
}

// kept is a cache of the most recently used proven blocks. Entries never become stale, because the hash identifies
// the content.
type kept struct {
	limit int // bytes

	mu    sync.Mutex
	size  int
	byUse list.List // of *keptBlock, most recently used first
	at    map[common.Hash]*list.Element
}

type keptBlock struct {
	hash  common.Hash
	block *ProvenBlock
	size  int
}

func (k *kept) get(hash common.Hash) *ProvenBlock {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.at[hash]
	if !ok {
		return nil
	}
	k.byUse.MoveToFront(e)
	return e.Value.(*keptBlock).block
}

// put caches a block of the given size and evicts the least recently used ones.
func (k *kept) put(hash common.Hash, b *ProvenBlock, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.at[hash]; ok || size > k.limit {
		return
	}
	if k.at == nil {
		k.at = make(map[common.Hash]*list.Element)
	}
	k.at[hash] = k.byUse.PushFront(&keptBlock{hash, b, size})
	for k.size += size; k.size > k.limit; {
		last := k.byUse.Remove(k.byUse.Back()).(*keptBlock)
		delete(k.at, last.hash)
		k.size -= last.size
	}
}
