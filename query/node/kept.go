package node

import (
	"container/list"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
)

// keptBytes bounds the proven blocks that are kept, by the length of the node's answers:
// some hundred blocks of Ethereum's mainnet. In memory they take about as much again.
const keptBytes = 64 << 20

// Block is a proven block. Several requests may use it at once.
type Block struct {
	mu     sync.Mutex // go-ethereum's trie is for one at a time
	proven *chainproof.Block
}

// Log gives the log with an index in the block, and its proof: see chainproof.Block.
func (b *Block) Log(index uint32) (*types.Log, *chainproof.Proof, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proven.Log(index)
}

// kept are the proven blocks that were used last. A block is never another one: it is what
// its hash stands for.
type kept struct {
	limit int // bytes

	mu    sync.Mutex
	size  int
	byUse list.List // of *keptBlock, the last used first
	at    map[common.Hash]*list.Element
}

type keptBlock struct {
	hash  common.Hash
	block *Block
	size  int
}

func (k *kept) get(hash common.Hash) *Block {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.at[hash]
	if !ok {
		return nil
	}
	k.byUse.MoveToFront(e)
	return e.Value.(*keptBlock).block
}

// put keeps a block of so many bytes, and drops those that were used longest ago.
func (k *kept) put(hash common.Hash, b *Block, size int) {
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
