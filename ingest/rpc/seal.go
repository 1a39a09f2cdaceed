package rpc

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
)

// A header is sealed if its fields hash to its hash by Ethereum's rule: then the block's hash covers its bloom, which
// otherwise rests on the node's word. A chain that hashes its headers in another way has no sealed headers.

// sealed reports whether the fields of a header hash to its hash, and whether it is plain: it has all fields of an
// Ethereum header and no unknown ones. A plain header that is not sealed belongs to a chain with another hashing rule,
// or was changed.
func sealed(result []byte, hash common.Hash) (seals, plain bool) {
	s := scanner{b: result}
	text, plain := []byte{'{'}, true
	err := s.members('{', '}', func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		value, err := s.value()
		if err != nil {
			return err
		}
		hashed, known := chainproof.Member(string(name))
		plain = plain && (known || string(value) == string(null))
		if hashed {
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(append(append(append(text, '"'), name...), `":`...), value...)
		}
		return nil
	})
	var h types.Header
	if err != nil || json.Unmarshal(append(text, '}'), &h) != nil {
		return false, false
	}
	seals = h.Hash() == hash
	return seals, plain
}

// seals is what is known about the rule by which a chain hashes its headers. All endpoints of a pool share it.
type seals struct {
	mu   sync.Mutex
	from uint64 // lowest block above the genesis with a sealed header; 0 for none
}

// saw notes a header. It returns an error for a plain header that is not sealed although a header of the same or a
// lower block is: one of its fields was changed.
func (s *seals) saw(h *Header, plain bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.Number == 0:
	case h.Sealed && (s.from == 0 || h.Number < s.from):
		s.from = h.Number
	case !h.Sealed && plain && s.from > 0 && h.Number >= s.from:
		return fmt.Errorf("the fields of the header of block %d do not hash to its hash %s, as those of block %d do: a field was changed", h.Number, h.Hash, s.from)
	}
	return nil
}
