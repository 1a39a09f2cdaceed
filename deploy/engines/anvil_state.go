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

// Anvil writes its chain over the file that holds the last one, so a crash at that moment would leave nothing. It
// therefore writes to dumpFile and never reads it; at each start a whole dump becomes the stateFile that anvil reads.
const (
	dumpFile  = "dump.json"
	stateFile = "state.json"
)

// anvilState is the path of the state to continue from, "" where there is none.
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

// oneGenesis drops from a dump the genesis blocks that anvil makes anew at each start beside the loaded one. Where it
// loads several it takes any of them, and the chain would seem to have changed from its first block on. The oldest is
// the true one.
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
