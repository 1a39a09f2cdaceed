package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Anvil overwrites the file that holds its last state, so a crash during the write would destroy both. Therefore it
// writes to dumpFile and never reads it; at each start, a complete dump becomes the stateFile that anvil reads.
const (
	dumpFile  = "dump.json"
	stateFile = "state.json"
)

// anvilState returns the path of the state to continue from, or "" if there is none.
func anvilState(dir string) (string, error) {
	state, dump := filepath.Join(dir, stateFile), filepath.Join(dir, dumpFile)
	text, err := os.ReadFile(dump)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("start %s: read the chain: %w", anvilName, err)
	}
	if json.Valid(text) {
		if text, err = oneGenesis(text); err != nil {
			return "", fmt.Errorf("start %s: read the chain in %s: %w", anvilName, dump, err)
		}
		if err = os.WriteFile(state+".new", text, 0o644); err == nil {
			err = os.Rename(state+".new", state)
		}
		if err != nil {
			return "", fmt.Errorf("start %s: keep the chain: %w", anvilName, err)
		}
	}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("start %s: find the chain: %w", anvilName, err)
	}
	return state, nil
}

// oneGenesis removes from a dump the additional genesis blocks that anvil creates at each start. If anvil loads
// several, it picks any of them, and the chain would appear to have changed from its first block on. The oldest is the
// real one.
func oneGenesis(dump []byte) ([]byte, error) {
	var state map[string]json.RawMessage
	if err := json.Unmarshal(dump, &state); err != nil {
		return nil, err
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(state["blocks"], &blocks); err != nil {
		return nil, fmt.Errorf("its blocks: %w", err)
	}
	var (
		kept    []json.RawMessage
		genesis json.RawMessage
		oldest  uint64
	)
	for _, raw := range blocks {
		var block struct {
			Header struct{ Number, Timestamp string }
		}
		if err := json.Unmarshal(raw, &block); err != nil {
			return nil, fmt.Errorf("its blocks: %w", err)
		}
		if block.Header.Number != "0x0" {
			kept = append(kept, raw)
			continue
		}
		at, err := strconv.ParseUint(block.Header.Timestamp, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("the time of its genesis block: %w", err)
		}
		if genesis == nil || at < oldest {
			genesis, oldest = raw, at
		}
	}
	if genesis != nil {
		kept = append(kept, genesis)
	}
	var err error
	if state["blocks"], err = json.Marshal(kept); err != nil {
		return nil, err
	}
	return json.Marshal(state)
}
