package explain

import (
	"math"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
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

	mu     sync.Mutex
	size   int
	blocks lru.BasicLRU[common.Hash, keptBlock]
}

type keptBlock struct {
	*ProvenBlock
	size int
}

func newKept(limit int) *kept {
	return &kept{limit: limit, blocks: lru.NewBasicLRU[common.Hash, keptBlock](math.MaxInt)}
}

func (k *kept) get(hash common.Hash) *ProvenBlock {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, _ := k.blocks.Get(hash)
	return b.ProvenBlock
}

// put caches a block of the given size and evicts the least recently used ones.
func (k *kept) put(hash common.Hash, b *ProvenBlock, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blocks.Contains(hash) || size > k.limit {
		return
	}
	k.blocks.Add(hash, keptBlock{b, size})
	for k.size += size; k.size > k.limit; {
		_, oldest, _ := k.blocks.RemoveOldest()
		k.size -= oldest.size
	}
}
