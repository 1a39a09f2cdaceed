package chainproof

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ReadHeader reads the answer of eth_getBlockByHash or eth_getBlockByNumber as a header
// that go-ethereum encodes; nil for null. The hash of the header is proven by nobody here.
//
// It returns an *UnprovableError for a header that nothing can be proven by: there is no
// receipts root, a field is missing, or it hashes to the hash that it names only with
// fields that Ethereum's headers do not have.
func ReadHeader(raw []byte) (*types.Header, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	var named struct {
		Hash         common.Hash  `json:"hash"`
		ReceiptsRoot *common.Hash `json:"receiptsRoot"`
		Number       any          `json:"number"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	if named.Number == nil {
		return nil, nil
	}
	if named.ReceiptsRoot == nil {
		return nil, &UnprovableError{"its header has no receipts root"}
	}
	var h *types.Header
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, &UnprovableError{fmt.Sprintf("its header has not the fields of a header of Ethereum: %v", err)}
	}
	if more := foreign(members); h.Hash() != named.Hash && len(more) > 0 {
		return nil, &UnprovableError{fmt.Sprintf("its header has %s, which no header of Ethereum has, and does not hash to its hash without", strings.Join(more, ", "))}
	}
	return h, nil
}

// known are the members of a block in JSON that are of a header of Ethereum, or that nodes
// give beside it: none of these is hashed in another way on any chain.
var known = map[string]bool{
	"hash": true, "parentHash": true, "sha3Uncles": true, "miner": true, "stateRoot": true, "transactionsRoot": true, "receiptsRoot": true,
	"logsBloom": true, "difficulty": true, "number": true, "gasLimit": true, "gasUsed": true, "timestamp": true, "extraData": true, "mixHash": true,
	"nonce": true, "baseFeePerGas": true, "withdrawalsRoot": true, "blobGasUsed": true, "excessBlobGas": true, "parentBeaconBlockRoot": true,
	"requestsHash": true, "blockAccessListHash": true, "slotNumber": true,
	"transactions": true, "uncles": true, "withdrawals": true, "size": true, "totalDifficulty": true, "author": true, "sealFields": true,
	"l1BlockNumber": true, "sendRoot": true, "sendCount": true, // Arbitrum has them in extraData and mixHash
}

// foreign are at most three other members that are not null.
func foreign(members map[string]json.RawMessage) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !known[name] && string(members[name]) != "null" && len(names) < 3 {
			names = append(names, fmt.Sprintf("%.40q", name))
		}
	}
	return names
}
