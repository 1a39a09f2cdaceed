package contracts

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/common"
)

// Encode returns the topics and data of the log that a vault emits for e, so that tests can build a chain by hand. It
// fails if a *big.Int is nil, negative or longer than 256 bits.
func Encode(e Event) (topics []common.Hash, data []byte, err error) {
	declared, fields := VaultABI().Events[e.Kind().String()], reflect.ValueOf(e)
	topics = append(make([]common.Hash, 0, 1+len(declared.Inputs)), declared.ID)
	for i, argument := range declared.Inputs {
		var word common.Hash
		switch v := fields.Field(i).Interface().(type) {
		case common.Address:
			word = common.BytesToHash(v[:])
		case *big.Int:
			if v == nil || v.Sign() < 0 || v.BitLen() > 256 {
				return nil, nil, fmt.Errorf("encode %s: %v is not an unsigned 256-bit integer", e.Kind(), v)
			}
			word = common.BigToHash(v)
		default:
			word = common.BigToHash(new(big.Int).SetUint64(fields.Field(i).Uint()))
		}
		if argument.Indexed {
			topics = append(topics, word)
		} else {
			data = append(data, word[:]...)
		}
	}
	return topics, data, nil
}
