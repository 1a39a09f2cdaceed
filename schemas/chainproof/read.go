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

// ReadHeader reads the response of eth_getBlockByHash or eth_getBlockByNumber as a header that go-ethereum can encode;
// nil for null. It does not prove the header's hash.
//
// It returns an *UnprovableError for a header that cannot prove anything: it has no receipts root, a field is missing,
// or it only hashes to its claimed hash with fields that Ethereum's headers do not have.
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
		return nil, &UnprovableError{fmt.Sprintf("its header does not have the fields of a header of Ethereum: %v", err)}
	}
	if more := foreign(members); h.Hash() != named.Hash && len(more) > 0 {
		return nil, &UnprovableError{fmt.Sprintf("its header has %s, which no header of Ethereum has, and does not hash "+
			"to its hash without", strings.Join(more, ", "))}
	}
	return h, nil
}

// known are the JSON members of a block that are fields of Ethereum's header, which the block's hash covers, and
// further ones that nodes send. No chain hashes those, although Arbitrum also has its own in extraData and mixHash.
var known = strings.Fields(`parentHash sha3Uncles miner stateRoot transactionsRoot receiptsRoot logsBloom difficulty number
	gasLimit gasUsed timestamp extraData mixHash nonce baseFeePerGas withdrawalsRoot blobGasUsed excessBlobGas
	parentBeaconBlockRoot requestsHash blockAccessListHash slotNumber
	hash transactions uncles withdrawals size totalDifficulty author sealFields l1BlockNumber sendRoot sendCount`)

// Known reports whether a JSON member of a block is known: an unknown one may be hashed by a chain with its own rule.
func Known(name string) bool { return slices.Contains(known, name) }

// foreign returns at most three other members that are not null.
func foreign(members map[string]json.RawMessage) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !Known(name) && string(members[name]) != "null" && len(names) < 3 {
			names = append(names, fmt.Sprintf("%.40q", name))
		}
	}
	return names
}
