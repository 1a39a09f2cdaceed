package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// jsonLog is the oracle: a log as decoded by encoding/json.
type jsonLog struct {
	Address   *common.Address `json:"address"`
	Topics    *[]common.Hash  `json:"topics"`
	Data      *hexutil.Bytes  `json:"data"`
	Number    *hexutil.Uint64 `json:"blockNumber"`
	BlockHash *common.Hash    `json:"blockHash"`
	Time      *hexutil.Uint64 `json:"blockTimestamp"`
	TxHash    *common.Hash    `json:"transactionHash"`
	TxIndex   *hexutil.Uint64 `json:"transactionIndex"`
	Index     *hexutil.Uint64 `json:"logIndex"`
	Removed   *bool           `json:"removed"`
}

// UnmarshalJSON accepts only exact names, not names in another case, and strings with escapes, which hexutil rejects.
func (l *jsonLog) UnmarshalJSON(b []byte) error {
	type plain jsonLog
	var members map[string]any
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	if members == nil {
		return fmt.Errorf("null")
	}
	kept := map[string]any{}
	for _, name := range logMembers {
		if value, has := members[name]; has {
			kept[name] = value
		}
	}
	again, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return json.Unmarshal(again, (*plain)(l))
}

// oracle does the same as decodeLogs, with encoding/json.
func oracle(b []byte) ([]*event.Log, error) {
	var all *[]jsonLog
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, fmt.Errorf("null")
	}
	var logs []*event.Log
	for _, l := range *all {
		switch {
		case l.Address == nil, l.Topics == nil, l.Data == nil, l.Number == nil, l.BlockHash == nil, l.TxHash == nil,
			l.Index == nil,
			l.Removed != nil && *l.Removed, len(*l.Topics) > 4, l.TxIndex != nil && *l.TxIndex >= 1<<32, *l.Index >= 1<<32:
			return nil, fmt.Errorf("not a log of a mined block")
		}
		out := &event.Log{
			Address: l.Address[:], Data: *l.Data, BlockNumber: uint64(*l.Number), BlockHash: l.BlockHash[:], BlockTime: noTime,
			TxHash: l.TxHash[:], LogIndex: uint32(*l.Index),
		}
		if l.TxIndex != nil {
			out.TxIndex = uint32(*l.TxIndex)
		}
		if l.Time != nil && *l.Time != 0 && *l.Time <= maxSeconds {
			out.BlockTime = uint64(*l.Time)
		}
		for _, t := range *l.Topics {
			out.Topics = append(out.Topics, t.Bytes())
		}
		logs = append(logs, out)
	}
	inOrder := &answer{logs: logs, unsorted: len(logs) > 0}
	err := inOrder.order()
	return inOrder.logs, err
}

// someLog returns a log in block number, as nodes write it.
func someLog(rng *rand.Rand, number uint64, index int, data int) map[string]any {
	fill := func(n int) hexutil.Bytes {
		b := make(hexutil.Bytes, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	topics := []any{}
	for range rng.IntN(5) {
		topics = append(topics, fill(32))
	}
	return map[string]any{
		"address": fill(20), "topics": topics, "data": fill(data), "blockNumber": hexutil.Uint64(number),
		"blockHash":      common.BigToHash(common.Big1),
		"blockTimestamp": hexutil.Uint64(1_700_000_000 + number), "transactionHash": fill(32), "transactionIndex": "0x1",
		"logIndex": hexutil.Uint64(index), "removed": false,
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// agrees compares the decoder with the oracle: whatever encoding/json accepts, the decoder decodes to the same logs. It
// accepts more than the oracle, except for conflicting duplicate members, and must not panic on any input.
func agrees(t *testing.T, b []byte) {
	t.Helper()
	want, wrong := oracle(b)
	got, err := decodeLogs(b)
	if !json.Valid(b) {
		return
	}
	if wrong != nil || err != nil && strings.Contains(err.Error(), "it is there twice") {
		return
	}
	if err != nil {
		t.Fatalf("the decoder rejects what encoding/json accepts: %v, input %s", err, b)
	}
	if len(got.logs) != len(want) {
		t.Fatalf("%d logs instead of %d of %s", len(got.logs), len(want), b)
	}
	for i := range want {
		if !proto.Equal(got.logs[i], want[i]) {
			t.Fatalf("log %d is\n%v instead of\n%v", i, got.logs[i], want[i])
		}
	}
}

func TestDecodeLogs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 200, 700} {
		var logs []any
		for i := range n {
			logs = append(logs, someLog(rng, uint64(i/3), i, 32*rng.IntN(8)))
		}
		if n == 0 {
			logs = []any{}
		}
		b := mustJSON(t, logs)
		agrees(t, b)
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, b, "\t", "\r\n "); err != nil {
			t.Fatal(err)
		}
		agrees(t, spaced.Bytes())
		if got, err := decodeLogs(b); err != nil || len(got.logs) != n || got.bytes != len(b) {
			t.Errorf("%d logs: %v, %v", n, got, err)
		}
	}
	// Long data next to short data.
	agrees(t, mustJSON(t, []any{someLog(rng, 1, 0, 5), someLog(rng, 1, 1, 100_000), someLog(rng, 1, 2, 5)}))
}

// Each case changes one member of a valid log; the last field says whether the decoder accepts it.
func TestDecodeLogsIsStrict(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	hash := "0x" + strings.Repeat("ab", 32)
	for _, c := range []struct {
		member, value string
		good          bool
	}{
		{"address", `"0x` + strings.Repeat("A1", 20) + `"`, true},
		{"address", `"0X` + strings.Repeat("a1", 20) + `"`, true},
		{"address", `"\u0030x` + strings.Repeat("a1", 20) + `"`, true},
		{"address", `"` + strings.Repeat("a1", 20) + `"`, true},
		{"address", `"0x` + strings.Repeat("a1", 21) + `"`, false},
		{"address", `"0x` + strings.Repeat("g1", 20) + `"`, false},
		{"address", `null`, false},
		{"topics", `[]`, true},
		{"topics", `["` + hash + `"]`, true},
		{"topics", `["` + hash + `","` + hash + `","` + hash + `","` + hash + `","` + hash + `"]`, false},
		{"topics", `["0x12"]`, false},
		{"topics", `["` + hash + `",]`, false},
		{"topics", `null`, true},
		{"topics", `{}`, false},
		{"data", `null`, true},
		{"data", `"0x"`, true},
		{"data", `""`, true},
		{"data", `"0x123"`, false},
		{"data", `"0xzz"`, false},
		{"data", `12`, false},
		{"blockNumber", `"0xffffffffffffffff"`, true},
		{"blockNumber", `"0x10000000000000000"`, false},
		{"blockNumber", `"0x01"`, true},
		{"blockNumber", `"0x000000000000000000000000000000ff"`, true},
		{"blockNumber", `7`, true},
		{"blockNumber", `7.0`, true},
		{"blockNumber", `7.5`, false},
		{"blockNumber", `-7`, false},
		{"blockNumber", `1e3`, false},
		{"blockNumber", `18446744073709551616`, false},
		{"blockNumber", `"7"`, false},
		{"blockNumber", `true`, false},
		{"blockNumber", `"0x"`, false},
		{"blockNumber", `null`, false},
		{"blockTimestamp", `null`, true},
		{"blockTimestamp", `"0x0"`, true},
		{"blockTimestamp", `1700000000`, true},
		{"blockTimestamp", `"soon"`, true},
		{"blockTimestamp", `{"seconds":7}`, true},
		{"blockTimestamp", `tru`, false},
		{"blockHash", `null`, false},
		{"transactionHash", `null`, false},
		{"logIndex", `null`, false},
		{"logIndex", `3`, true},
		{"logIndex", `"0xffffffff"`, true},
		{"logIndex", `"0x100000000"`, false},
		{"transactionIndex", `"0x100000000"`, false},
		{"transactionIndex", `null`, true},
		{"removed", `true`, true}, // but it is not among the logs
		{"removed", `null`, true},
		{"removed", `"false"`, false},
		{"other", `{"a":[1,"}",{"b":"\\\""}],"c":null}`, true},
		{"other", `tru`, false},
	} {
		l := someLog(rng, 7, 1, 32)
		l[c.member] = json.RawMessage("0")
		b := bytes.Replace(mustJSON(t, []any{l}), []byte(`"`+c.member+`":0`), []byte(`"`+c.member+`":`+c.value), 1)
		agrees(t, b)
		if _, err := decodeLogs(b); (err == nil) != c.good || err != nil && c.member != "other" &&
			!strings.Contains(err.Error(), c.member+": ") {
			t.Errorf("%s %s: %v", c.member, c.value, err)
		}
	}
	if a, err := decodeLogs([]byte("null")); err != nil || len(a.logs) > 0 { // an empty list, as some nodes write it
		t.Errorf("null: %v, %v", a, err)
	}
	for _, name := range logMembers[:needed] {
		l := someLog(rng, 7, 1, 32)
		delete(l, name)
		if _, err := decodeLogs(mustJSON(t, []any{l})); err == nil || !strings.Contains(err.Error(), "it has no "+name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	good := mustJSON(t, []any{someLog(rng, 7, 1, 32)})
	for cut := range good { // every point at which a response may be cut off
		if _, err := decodeLogs(good[:cut]); err == nil {
			t.Fatalf("a response truncated after %d of %d bytes is accepted", cut, len(good))
		}
	}
	for _, rest := range []string{"x", "]", "[]", ",", "{}"} {
		if _, err := decodeLogs(append(bytes.Clone(good), rest...)); err == nil {
			t.Errorf("%q after the response is accepted", rest)
		}
	}
	for _, other := range []string{"", "{}", `"0x"`, "[null]", "[[]]", "[1]"} {
		if _, err := decodeLogs([]byte(other)); err == nil {
			t.Errorf("%q is accepted as logs", other)
		}
	}
}

func FuzzDecodeLogs(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 3))
	f.Add(mustJSON(f, []any{someLog(rng, 1, 0, 64), someLog(rng, 1, 1, 0)}))
	f.Add([]byte(`[{"address":"0x"}]`))
	f.Add([]byte(`[]`))
	f.Add([]byte("\n [ { } ] "))
	f.Fuzz(func(t *testing.T, b []byte) {
		agrees(t, b)
		_, _ = decodeReceipts(b)
		_, _ = decodeHeader(b)
	})
}

func TestDecodeHeader(t *testing.T) {
	bloom := make(hexutil.Bytes, 256)
	bloom[3] = 9
	good := map[string]any{
		"number": "0x10", "hash": common.BigToHash(common.Big2), "parentHash": common.BigToHash(common.Big1),
		"timestamp": "0x64", "logsBloom": bloom,
		"transactions": []any{"0x1", map[string]any{"hash": "0x2", "number": "0x5"}}, "baseFeePerGas": "0x7",
	}
	h, err := decodeHeader(mustJSON(t, good))
	if err != nil {
		t.Fatal(err)
	}
	if h.Number != 16 || h.Hash != common.BigToHash(common.Big2) || h.Parent != common.BigToHash(common.Big1) ||
		h.Time != 100 || h.Bloom[3] != 9 {
		t.Errorf("the header is %+v", h)
	}
	if h, err := decodeHeader([]byte("null")); h != nil || err != nil {
		t.Errorf("null gives %v, %v", h, err)
	}
	for _, name := range []string{"number", "hash", "parentHash", "timestamp"} {
		without := map[string]any{}
		for k, v := range good {
			if k != name {
				without[k] = v
			}
		}
		if _, err := decodeHeader(mustJSON(t, without)); err == nil {
			t.Errorf("a block without %s is accepted", name)
		}
		without[name] = nil
		if _, err := decodeHeader(mustJSON(t, without)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a block whose %s is null: %v", name, err)
		}
	}
	if _, err := decodeHeader([]byte(`{"number":"0x1"`)); err == nil {
		t.Error("half a block is accepted")
	}
	for _, time := range []string{"0x18bcfe56800", "0xffffffffffffffff"} { // milliseconds, and no time at all
		good["timestamp"] = time
		if _, err := decodeHeader(mustJSON(t, good)); err == nil || !strings.Contains(err.Error(), "timestamp") {
			t.Errorf("a block with the time %s: %v", time, err)
		}
	}
}

func TestDecodeReceipts(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	receipts := []any{
		map[string]any{"status": "0x1", "logs": []any{someLog(rng, 1, 0, 32), someLog(rng, 1, 1, 0)}},
		map[string]any{"logs": []any{}, "contractAddress": nil},
		map[string]any{"logs": []any{someLog(rng, 1, 2, 64)}},
	}
	a, err := decodeReceipts(mustJSON(t, receipts))
	if err != nil || len(a.logs) != 3 || a.logs[2].LogIndex != 2 {
		t.Errorf("got %v, %v", a, err)
	}
	if a, err := decodeReceipts([]byte(`[{"logs":null},{"logs":[]}]`)); err != nil || len(a.logs) > 0 {
		t.Errorf("no logs: %v, %v", a, err)
	}
	for _, wrong := range []string{`null`, `[null]`, `{}`, `[{"status":"0x1"}]`, `[{"logs":[],"logs":null}]`,
		`[{"logs":[]}`, `[{"logs":[{}]}]`} {
		if _, err := decodeReceipts([]byte(wrong)); err == nil {
			t.Errorf("%s is accepted as receipts", wrong)
		}
	}
}

// BenchmarkDecodeLogs reports the time per log with three topics and three words of data.
func BenchmarkDecodeLogs(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	const n = 5000
	var logs []any
	for i := range n {
		l := someLog(rng, uint64(i/500), i%500, 96)
		l["address"] = common.BigToAddress(common.Big1)
		l["topics"] = []common.Hash{common.BigToHash(common.Big1), common.BigToHash(common.Big2),
			common.BigToHash(common.Big3)}
		logs = append(logs, l)
	}
	raw := mustJSON(b, logs)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if _, err := decodeLogs(raw); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/log")
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if _, err := oracle(raw); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/log")
	})
}

// A response of nothing but removed logs is rejected before it takes much memory.
func TestManyRemovedLogs(t *testing.T) {
	for logs, want := range map[int]string{maxRemoved: "",
		maxRemoved + 1: "more than 10000 logs are reported as removed"} {
		a, err := decodeLogs([]byte("[" + strings.Repeat(`{"removed":true},`, logs-1) + `{"removed":true}]`))
		if want == "" && (err != nil || len(a.removed) != logs) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d removed logs give %v", logs, err)
		}
	}
}
