package devchain

import (
	"bytes"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/contracts"
)

// parser parses logs of any vault.
var parser = bind.NewBoundContract(common.Address{}, *contracts.VaultABI(), nil, nil, nil)

// Decode decodes a log with go-ethereum's decoder, for tests: it shares no code with schemas/mapping, which all
// programs use. It returns the event of the log, or nil if it is not an event of the reference contracts. A log with
// the signature of such an event that is not encoded as Solidity encodes it is an error.
func Decode(topics []common.Hash, data []byte) (contracts.Event, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	kind := contracts.KindOf(topics[0])
	if kind == contracts.KindUnknown {
		return nil, nil
	}
	values := map[string]any{}
	if err := parser.UnpackLogIntoMap(values, kind.String(), types.Log{Topics: topics, Data: data}); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	out := reflect.New(reflect.TypeOf(kind.Zero())).Elem()
	for i := range out.NumField() {
		for name, value := range values {
			if strings.EqualFold(name, out.Type().Field(i).Name) {
				out.Field(i).Set(reflect.ValueOf(value))
			}
		}
		if v, ok := out.Field(i).Interface().(*big.Int); ok && v == nil {
			return nil, fmt.Errorf("%s has no %s", kind, out.Type().Field(i).Name)
		}
	}
	e := out.Interface().(contracts.Event)
	// go-ethereum accepts more than Solidity writes: longer data, and words that are too large for their type.
	if same, bytesOf, err := contracts.Encode(e); err != nil || !slices.Equal(same, topics) ||
		!bytes.Equal(bytesOf, data) {
		return nil, fmt.Errorf("%s is not what Solidity writes, %w", kind, err)
	}
	return e, nil
}
