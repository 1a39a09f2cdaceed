package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A long chain cannot be mined: the time that anvil needs for a block grows by a millisecond for each thousand blocks
// below it, so 200,000 blocks would take hours. But anvil can load a long chain. So the benchmark mines a short chain,
// in which consecutive blocks have a log, and stretches it in the file that anvil wrote when it stopped: empty blocks
// are inserted between the others, all blocks get new numbers, times and hashes, and the transactions, whose hashes do
// not depend on their block, stay unchanged.
const (
	dumpFile  = "dump.json"  // written by the chain of engines.StartAnvil
	stateFile = "state.json" // loaded when the chain continues
)

// dumpedBlock is a block in anvil's file; fields not named here are kept unchanged.
type dumpedBlock struct {
	header types.Header
	rest   map[string]json.RawMessage
}

func (b *dumpedBlock) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &b.rest); err != nil {
		return err
	}
	return json.Unmarshal(b.rest["header"], &b.header)
}

func (b *dumpedBlock) MarshalJSON() (text []byte, err error) {
	if b.rest["header"], err = json.Marshal(&b.header); err != nil {
		return nil, err
	}
	return json.Marshal(b.rest)
}

// stretch makes the stopped chain in dir longer: each block from first on moves to a multiple of every above the block
// before first, except the last kept blocks, which stay consecutive. It returns the new height.
func stretch(dir string, first, every, kept uint64) (height uint64, err error) {
	text, err := os.ReadFile(filepath.Join(dir, dumpFile))
	if err != nil {
		return 0, fmt.Errorf("stretch the chain: %w", err)
	}
	var state map[string]json.RawMessage
	var blocks []*dumpedBlock
	if err := errors.Join(json.Unmarshal(text, &state), json.Unmarshal(state["blocks"], &blocks)); err != nil {
		return 0, fmt.Errorf("stretch the chain: read what anvil wrote: %w", err)
	}
	slices.SortFunc(blocks, func(a, b *dumpedBlock) int { return a.header.Number.Cmp(b.header.Number) })
	out, err := os.Create(filepath.Join(dir, stateFile))
	if err != nil {
		return 0, fmt.Errorf("stretch the chain: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := &longChain{out: bufio.NewWriterSize(out, 1<<20), hashes: map[common.Hash]*types.Header{}}
	w.print(`{"blocks":[`)
	empty := *blocks[len(blocks)-1] // the last block was mined without transactions
	for i, b := range blocks {
		if n := uint64(i); n >= first && n < uint64(len(blocks))-kept {
			for range every - 1 {
				filler := dumpedBlock{empty.header, maps.Clone(empty.rest)}
				w.add(&filler)
			}
		}
		w.add(b)
	}
	w.print(`]`)
	state["best_block_number"] = fmt.Appendf(nil, "%d", w.next-1)
	if err := w.finish(state); err != nil {
		return 0, fmt.Errorf("stretch the chain: %w", err)
	}
	return w.next - 1, os.Remove(filepath.Join(dir, dumpFile))
}

// longChain is the file for anvil to load.
type longChain struct {
	out    *bufio.Writer
	next   uint64
	parent common.Hash
	hashes map[common.Hash]*types.Header // new headers by old hash, without the inserted blocks
	err    error
}

func (w *longChain) print(text string) {
	if _, err := io.WriteString(w.out, text); w.err == nil {
		w.err = err
	}
}

// add appends a block.
func (w *longChain) add(b *dumpedBlock) {
	old := b.header.Hash()
	if w.next > 0 {
		w.print(",")
		b.header.ParentHash, b.header.Time = w.parent, genesis+blockSeconds*w.next
		b.header.Number = new(big.Int).SetUint64(w.next)
	}
	text, err := b.MarshalJSON()
	if w.err == nil {
		w.err = err
	}
	w.print(string(text))
	header := b.header
	// inserted blocks share the hash of the last block, which is added after all of them
	w.parent, w.hashes[old] = header.Hash(), &header
	w.next++
}

// finish writes everything but the blocks, and moves the transactions to their blocks' new numbers.
func (w *longChain) finish(state map[string]json.RawMessage) error {
	var transactions []map[string]json.RawMessage
	var current map[string]json.RawMessage
	if err := errors.Join(w.err, json.Unmarshal(state["transactions"], &transactions),
		json.Unmarshal(state["block"], &current)); err != nil {
		return err
	}
	for _, tx := range transactions {
		var old common.Hash
		if err := json.Unmarshal(tx["block_hash"], &old); err != nil {
			return err
		}
		header, ok := w.hashes[old]
		if !ok {
			return fmt.Errorf("a transaction is in block %s, which is not there", old)
		}
		tx["block_number"] = fmt.Appendf(nil, "%d", header.Number)
		tx["block_hash"] = fmt.Appendf(nil, "%q", header.Hash().Hex())
	}
	current["number"] = fmt.Appendf(nil, `"0x%x"`, w.next-1)
	current["timestamp"] = fmt.Appendf(nil, `"0x%x"`, genesis+blockSeconds*(w.next-1))
	var err error
	if state["transactions"], err = json.Marshal(transactions); err != nil {
		return err
	}
	if state["block"], err = json.Marshal(current); err != nil {
		return err
	}
	for name, value := range state {
		if name != "blocks" {
			w.print(fmt.Sprintf(",%q:%s", name, value))
		}
	}
	w.print("}\n")
	return errors.Join(w.err, w.out.Flush())
}
