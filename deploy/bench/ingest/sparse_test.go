package main

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// Each call about a block below the window counts, whatever it requests and however it names the block; calls about the
// window or the chain as a whole do not.
func TestCallsOfTheHistory(t *testing.T) {
	const first, tip = 10, 5000 // the window begins above block 3976
	hash := func(number int64) string { return common.BigToHash(big.NewInt(number)).Hex() }
	numberOf := func(hash common.Hash) (uint64, error) {
		if number := hash.Big(); number.IsUint64() {
			return number.Uint64(), nil
		}
		return 0, nil // a transaction's hash
	}
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	always := []string{
		call("eth_chainId", `[]`), call("eth_getCode", `["0x00000000000000000000000000000000000000A1","latest"]`),
		call("eth_call", `[{"to":"0x00000000000000000000000000000000000000A1"},"latest"]`),
		call("eth_getBlockByNumber", `["latest",false]`), call("eth_getBlockByNumber", `["0x0",false]`),
		call("eth_getBlockByNumber", `["0xf89",false]`), call("eth_getLogs", `[{"fromBlock":"0xf89","toBlock":"0x1380"}]`),
		call("eth_getLogs", `[{"blockHash":"`+hash(4999)+`"}]`),
		// of 3000 and 1491 blocks
		call("eth_getLogs", `[{"fromBlock":"0xa","toBlock":"0xbc1"}]`),
		call("eth_getLogs", `[{"fromBlock":"0xbc2","toBlock":"0x1194"}]`),
	}
	for _, c := range []struct {
		body string
		want int
	}{
		{call("eth_getBlockByNumber", `["0xf88",false]`), 3},
		{call("eth_getBlockByHash", `["`+hash(3976)+`",false]`), 3},
		{call("eth_getBlockByHash", `["`+hash(3977)+`",false]`), 2},
		{"[" + call("eth_getBlockByHash", `["`+hash(50)+`",false]`) + "," + call("eth_getBlockByHash",
			`["`+hash(51)+`",false]`) + "]", 4},
		{call("eth_getBlockReceipts", `["`+hash(50)+`"]`), 3},
		{call("eth_getBlockReceipts", `["0x32"]`), 3},
		{call("eth_getLogs", `[{"address":[],"blockHash":"`+hash(50)+`"}]`), 3},
		{call("eth_getTransactionReceipt", `["0x`+fmt.Sprintf("%064x", new(big.Int).Lsh(big.NewInt(1), 200))+`"]`), 3},
	} {
		r := new(recorder)
		for _, body := range append(always, c.body) {
			r.note([]byte(body))
		}
		calls, perMillion, err := r.seen.history(first, tip, numberOf)
		// 996,033 of a million blocks below the window are missing; they would be read in ranges of 3000, 16 of which
		// share a header.
		if rest := perMillion - float64(calls) - 996_033./3000*17/16; err != nil || calls != c.want || rest > 1e-6 ||
			rest < -1e-6 {
			t.Errorf("beside the two ranges %s: %d calls, want %d; %f for a million: %v", c.body, calls, c.want, perMillion, err)
		}
	}
}
