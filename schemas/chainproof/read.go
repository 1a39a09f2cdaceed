package chainproof

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	var members members
	err := json.Unmarshal(raw, &members)
	if err == nil && members.none("number") {
		return nil, nil
	}
	var hash common.Hash
	if err == nil && !members.none("hash") {
		err = json.Unmarshal(members["hash"], &hash)
	}
	if err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	if members.none("receiptsRoot") {
		return nil, &UnprovableError{"its header has no receipts root"}
	}
	h, err := exactly[types.Header](members)
	if err != nil {
		return nil, &UnprovableError{fmt.Sprintf("its header does not have the fields of a header of Ethereum: %v", err)}
	}
	if more := members.unknownNames(); h.Hash() != hash && len(more) > 0 {
		return nil, &UnprovableError{fmt.Sprintf("its header has %s, which no header of Ethereum has, and does not hash "+
			"to its hash without", strings.Join(more[:min(len(more), 3)], ", "))}
	}
	return h, nil
}

// Seals reports whether the fields of a header, as a node returns it, hash to a hash by Ethereum's rule, and whether
// the header is plain: it has all fields that headers have in all forks, and no unknown members. A chain with its own
// rule may hash an unknown member.
func Seals(raw []byte, hash common.Hash) (seals, plain bool) {
	var members members
	if json.Unmarshal(raw, &members) != nil {
		return false, false
	}
	h, err := exactly[types.Header](members)
	return err == nil && h.Hash() == hash, err == nil && len(members.unknownNames()) == 0
}

// members are the members of a JSON object by their exact names.
type members map[string]json.RawMessage

func (m members) none(name string) bool { return len(m[name]) == 0 || string(m[name]) == "null" }

// Exactly decodes a JSON object into a struct from the members that have the names of its fields. encoding/json also
// accepts names in another case, and uses the last one: a node could prove one value of a field and show another one to
// a reader of exact names.
func Exactly[T any](raw []byte) (*T, error) {
	var all members
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	return exactly[T](all)
}

// exactly is Exactly for members that were read before.
func exactly[T any](all members) (*T, error) {
	if all == nil {
		return nil, errors.New("it is null")
	}
	own := members{}
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if value, has := all[name]; has {
			own[name] = value
		}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal(text, out)
}

// known are the JSON members of a block that are fields of Ethereum's header, which the block's hash covers, and
// further ones that nodes send. No chain hashes those, although Arbitrum also has its own in extraData and mixHash.
var known = strings.Fields(`parentHash sha3Uncles miner stateRoot transactionsRoot receiptsRoot logsBloom difficulty number
	gasLimit gasUsed timestamp extraData mixHash nonce baseFeePerGas withdrawalsRoot blobGasUsed excessBlobGas
	parentBeaconBlockRoot requestsHash blockAccessListHash slotNumber
	hash transactions uncles withdrawals size totalDifficulty author sealFields l1BlockNumber sendRoot sendCount`)

// unknownNames returns the names of the other members that are not null.
func (m members) unknownNames() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !m.none(name) && !slices.Contains(known, name) {
			names = append(names, fmt.Sprintf("%.40q", name))
		}
	}
	return names
}
