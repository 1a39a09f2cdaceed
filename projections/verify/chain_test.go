package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// devChain is a development chain with vaults and traffic.
type devChain struct {
	t      *testing.T
	url    string
	client *ethclient.Client
	vaults []devchain.Vault
	height uint64
}

func newDevChain(t *testing.T) *devChain {
	t.Helper()
	v := &devChain{t: t, url: enginetest.Anvil(t, engines.AnvilOptions{States: 10_000}).URL}
	deployed, err := devchain.Deploy(t.Context(), v.url)
	must(t, err)
	must(t, devchain.New(v.url, deployed, 1, []uint32{7}, slog.New(slog.DiscardHandler)).Steps(t.Context(), 60))
	v.vaults = deployed.Vaults
	v.client, err = ethclient.DialContext(t.Context(), v.url)
	must(t, err)
	t.Cleanup(v.client.Close)
	v.height, err = v.client.BlockNumber(t.Context())
	must(t, err)
	return v
}

// log returns the log that ingest writes if it covers each vault between two blocks: the vaults, and then the logs of
// each block followed by the block.
func (v *devChain) log(covered map[common.Address][2]uint64) (*event.Cursor, []*event.Record) {
	v.t.Helper()
	cursor := &event.Cursor{ChainId: chainID}
	var records []*event.Record
	add := func(r *event.Record, boundary bool) {
		r.Seq, r.ChainId, r.Boundary = uint64(len(records))+1, chainID, boundary
		if r.Seq == 1 {
			r.Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
		}
		records = append(records, r)
	}
	for _, vault := range v.vaults {
		c := covered[vault.Address]
		add(&event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: vault.Address.Bytes(), StartBlock: c[0],
			Name: vault.Name, Decimals: 6, Asset: &event.Token{Address: vault.Asset.Bytes(), Decimals: 6}}}}, true)
		cursor.Vaults = append(cursor.Vaults,
			&event.Coverage{Address: vault.Address.Bytes(), StartBlock: c[0], CoveredTo: c[1]})
	}
	for n := v.vaults[0].StartBlock; n <= v.height; n++ {
		h, err := v.client.HeaderByNumber(v.t.Context(), new(big.Int).SetUint64(n))
		must(v.t, err)
		hash := h.Hash()
		logs, err := devchain.Logs(v.t.Context(), v.client, h, slices.Collect(maps.Keys(covered))...)
		must(v.t, err)
		for _, l := range logs {
			if c := covered[common.Address(l.Address)]; c[0] <= n && n <= c[1] {
				add(&event.Record{Fact: &event.Record_Log{Log: l}}, false)
			}
		}
		add(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: n, Hash: hash.Bytes(),
			ParentHash: h.ParentHash.Bytes(), Time: h.Time}}}, true)
	}
	cursor.Seq = uint64(len(records))
	return cursor, records
}

// whole covers every vault from its creation to the head.
func (v *devChain) whole() map[common.Address][2]uint64 {
	covered := map[common.Address][2]uint64{}
	for _, vault := range v.vaults {
		covered[vault.Address] = [2]uint64{vault.StartBlock, v.height}
	}
	return covered
}

// compare compares a log with the chain of a node.
func (v *devChain) compare(node string, cursor *event.Cursor, records []*event.Record) (*Report, error) {
	v.t.Helper()
	report := new(Report)
	return report, againstChain(v.t.Context(),
		Options{Node: node, patience: patience, Progress: func(what string, done, of uint64) {
			if !strings.HasPrefix(what, "chain: ") || done >= of {
				v.t.Errorf("%s: reported %d of %d before that one", what, done, of)
			}
		}}, cursor, records, unmapped(v.t), report)
}

// TestChainIsComparedAsFarAsItIsCovered: the log is compared with the chain as far as it covers each vault. A vault
// that was removed, one whose history is still being read and one that begins later are no differences, but a log
// that is missing within the covered blocks is.
func TestChainIsComparedAsFarAsItIsCovered(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	check := func(covered map[common.Address][2]uint64, totals int) {
		t.Helper()
		cursor, records := v.log(covered)
		report, err := v.compare(v.url, cursor, records)
		must(t, err)
		compared := 0
		for _, c := range report.Checks {
			if strings.HasPrefix(c.Name, "chain: totals") && c.Compared > 8 {
				compared++
			}
		}
		if report.Err() != nil || compared != totals || report.Checks[0].Compared != v.height-v.vaults[0].StartBlock+1 {
			t.Errorf("want every block equal and the totals of %d vaults, got\n%s", totals, report)
		}
	}
	check(v.whole(), 3)

	covered := v.whole()
	one, other, late := v.vaults[0].Address, v.vaults[1].Address, v.vaults[2].Address
	covered[other] = [2]uint64{v.vaults[1].StartBlock, v.height - 20} // removed
	covered[late] = [2]uint64{v.height - 10, v.height - 11}           // nothing was read yet
	check(covered, 1)
	covered[late] = [2]uint64{v.height + 10, v.height + 9} // starts in the future
	check(covered, 1)

	cursor, records := v.log(covered)
	of := func(address common.Address) int {
		return slices.IndexFunc(records,
			func(r *event.Record) bool { return bytes.Equal(r.GetLog().GetAddress(), address.Bytes()) })
	}
	for _, address := range []common.Address{one, other} {
		i := of(address)
		report, err := v.compare(v.url, cursor, slices.Delete(slices.Clone(records), i, i+1))
		must(t, err)
		if fault := report.Err(); fault == nil ||
			!strings.Contains(fault.Error(), fmt.Sprintf("block %d with hash", records[i].GetLog().GetBlockNumber())) {
			t.Errorf("without a log of %s: %v", address, fault)
		}
	}
	cursor.Vaults = cursor.Vaults[1:]
	report, err := v.compare(v.url, cursor, records)
	must(t, err)
	if fault := report.Err(); fault == nil || !strings.Contains(fault.Error(), "does not say how far the vault was read") {
		t.Errorf("a cursor without a vault of the log: %v", fault)
	}
}

// TestLogWithoutDataIsCompared: a log whose data no record contains is compared by the length and the hash of the
// data.
func TestLogWithoutDataIsCompared(t *testing.T) {
	data := bytes.Repeat([]byte{7}, event.MaxData+1)
	returned := types.Log{Address: common.Address{1}, Topics: []common.Hash{{2}}, Data: data, BlockNumber: 3,
		TxHash: common.Hash{4}, Index: 5}
	kept := &event.Log{
		Address: returned.Address[:], Topics: [][]byte{returned.Topics[0][:]}, BlockNumber: 3, TxHash: returned.TxHash[:],
		LogIndex: 5,
	}
	kept.SetData(data)
	if difference := differ([]*event.Log{kept}, []types.Log{returned}); difference != "" {
		t.Errorf("the same log: %s", difference)
	}
	returned.Data = bytes.Repeat([]byte{8}, len(data))
	for _, other := range [][]byte{returned.Data, data[1:], nil} {
		returned.Data = other
		if difference := differ([]*event.Log{kept}, []types.Log{returned}); difference == "" {
			t.Errorf("%d bytes of other data cause no difference", len(other))
		}
	}
}

// TestOddLogsAreCompared: unusual formats of a node's logs do not matter; a value that is not a number is an error
// that names it.
func TestOddLogsAreCompared(t *testing.T) {
	hash := func(n byte) string { return common.Hash{n}.Hex() }
	log := func(number, index, more string) string {
		return fmt.Sprintf(`{"address":%q,"topics":[%q],"data":"0x0102","blockNumber":%s,"blockHash":%q,"transactionHash":%q,"logIndex":%s%s}`,
			common.Address{1}, hash(2), number, hash(3), hash(4), index, more)
	}
	var result string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ ID json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, question.ID, result)
	}))
	t.Cleanup(server.Close)
	client, err := ethclient.Dial(server.URL)
	must(t, err)
	t.Cleanup(client.Close)
	c := &chainCheck{client: client, url: server.URL, patience: patience, pace: rate.NewLimiter(rate.Inf, 1)}
	block := common.Hash{3}
	of := func(answer string) ([]types.Log, error) {
		result = answer
		return c.ofChain(t.Context(), ethereum.FilterQuery{BlockHash: &block, Addresses: []common.Address{{1}}})
	}
	want, err := of("[" + log(`"0x7"`, `"0x0"`, "") + "," + log(`"0x7"`, `"0x1"`, "") + "]")
	must(t, err)
	for name, answer := range map[string]string{
		"integers":      "[" + log("7", "0", "") + "," + log("7", "1", "") + "]",
		"leading zeros": "[" + log(`"0x07"`, `"0x00"`, "") + "," + log(`"0X007"`, `"0x01"`, "") + "]",
		"order":         "[" + log(`"0x7"`, `"0x1"`, "") + "," + log(`"0x7"`, `"0x0"`, "") + "]",
		"more": "[" + log(`"0x7"`, `"0x0"`, `,"blockTimestamp":1700000000,"removed":null`) + "," + log(`"0x7"`,
			`"0x1"`, `,"transactionIndex":{}`) + "]",
		"other names": "[" + log(`"0x7"`, `"0x0"`, `,"Data":"0x99","LogIndex":"0x5"`) + "," + log(`"0x7"`, `"0x1"`,
			`,"Removed":true`) + "]",
		"removed": "[" + log(`"0x7"`, `"0x0"`, `,"removed":true`) + "," + log(`"0x7"`, `"0x0"`, "") + "," + log(`"0x7"`,
			`"0x1"`, "") + "]",
	} {
		if got, err := of(answer); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := of("null"); err != nil || len(got) > 0 {
		t.Errorf("null: %v, %v", got, err)
	}
	if _, err := of("[" + log(`"7"`, `"0x0"`, "") + "]"); err == nil ||
		!strings.Contains(err.Error(), `"7" is not a number`) {
		t.Errorf("a number of an unknown base: %v", err)
	}
}

// TestVerifyWithTheChainBehindTheLog: coverage refers to the seq of the cursor, which the tables may not have
// reached: the chain is compared at that seq, and the tables at their own.
func TestVerifyWithTheChainBehindTheLog(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	covered := v.whole()
	covered[v.vaults[2].Address] = [2]uint64{v.vaults[2].StartBlock, v.height - 15}
	cursor, records := v.log(covered)
	behind := len(records) / 2
	for !records[behind-1].GetBoundary() {
		behind++
	}
	w := newWorld(t)
	w.append(t, records[:behind])
	w.events(t, records[:behind])
	w.build(t)
	w.registered(t, registry.Live)

	options := Options{Node: v.url}
	if _, err := Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, options); err == nil ||
		!strings.Contains(err.Error(), "cursor is at seq 0") {
		t.Errorf("without a cursor: %v", err)
	}
	w.append(t, records[behind:])
	value, err := proto.Marshal(cursor)
	must(t, err)
	must(t, w.producer.BeginTransaction())
	must(t, w.producer.ProduceSync(t.Context(),
		&kgo.Record{Topic: chainlog.CursorTopic(chainID), Value: value}).FirstErr())
	must(t, chainlog.EndTransaction(t.Context(), w.producer, kgo.TryCommit, chainlog.CursorTopic(chainID)))
	report, err := Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, options)
	must(t, err)
	if report.Seq != uint64(behind) || report.Err() != nil ||
		!strings.Contains(report.String(), fmt.Sprintf("(only read up to block %d)", v.height-15)) {
		t.Errorf("want all equal at seq %d, got\n%s", behind, report)
	}
}

// node is a proxy to the real node that responds to some requests itself.
func (v *devChain) node(answer func(method string, params []json.RawMessage) (result, fault any, handled bool)) string {
	v.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var call struct {
			ID     json.RawMessage
			Method string
			Params []json.RawMessage
		}
		_ = json.Unmarshal(body, &call)
		result, fault, handled := answer(call.Method, call.Params)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !handled:
			response, err := http.Post(v.url, "application/json", bytes.NewReader(body))
			if err != nil {
				return
			}
			defer response.Body.Close()
			_, _ = io.Copy(w, response.Body)
		case fault != nil:
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": call.ID, "error": fault})
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": result})
		}
	}))
	v.t.Cleanup(server.Close)
	return server.URL
}

// TestNodeThatRefuses: a node that refuses to return logs is an error, whatever its message, unless the chain has
// another block in place of the requested one.
func TestNodeThatRefuses(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	type fault = map[string]any
	refuse := func(f fault, at func() (any, any, bool)) string {
		return v.node(func(method string, params []json.RawMessage) (any, any, bool) {
			switch method {
			case "eth_getLogs":
				return nil, f, true
			case "eth_getBlockByNumber":
				return at()
			}
			return nil, nil, false
		})
	}
	truth := func() (any, any, bool) { return nil, nil, false }
	for _, f := range []fault{
		{"code": -32005, "message": "daily request count exceeded, request rate limited"},
		{"code": -32603, "message": "internal error"},
		{"code": -32000, "message": "request timed out"}, {"code": -32000, "message": "unknown block"},
	} {
		report, err := v.compare(refuse(f, truth), cursor, records)
		if err == nil || !strings.Contains(err.Error(), f["message"].(string)) || report.Err() != nil {
			t.Errorf("%v gives the error %v and the difference %v, want an error only", f, err, report.Err())
		}
	}
	unknown := fault{"code": -32001, "message": "Resource not found."}
	report, err := v.compare(refuse(unknown, func() (any, any, bool) { return nil, nil, true }), cursor, records)
	if err == nil || !strings.Contains(err.Error(), "wait until it is in sync") || report.Err() != nil {
		t.Errorf("a node that is behind gives the error %v and the difference %v", err, report.Err())
	}
	report, err = v.compare(refuse(unknown,
		func() (any, any, bool) { return fault{"hash": common.HexToHash("0xaa")}, nil, true }), cursor, records)
	must(t, err)
	if fault := report.Err(); fault == nil ||
		!strings.Contains(fault.Error(),
			"no longer part of the chain, which has block 0x00000000000000000000000000000000000000000000000000000000000000aa") {
		t.Errorf("a block that was replaced gives %v", fault)
	}
	report, err = v.compare(refuse(unknown, func() (any, any, bool) { return nil, unknown, true }), cursor, records)
	if err == nil || report.Err() != nil {
		t.Errorf("a node that rejects everything gives the error %v and the difference %v", err, report.Err())
	}
}

// TestNodeThatOmitsRequests: a node that returns a page without requests does not make the queue equal.
func TestNodeThatOmitsRequests(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	omits := v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		is := method == "eth_call" &&
			bytes.Contains(params[0], fmt.Appendf(nil, "%x", contracts.VaultABI().Methods["requests"].ID))
		// an empty array
		return hexutil.Encode(slices.Concat(common.BigToHash(big.NewInt(32)).Bytes(), make([]byte, 32))), nil, is
	})
	report, err := v.compare(omits, cursor, records)
	must(t, err)
	wantError(t, report.Err(), "requests 0 and on: the chain returns 0, but the log has ")
}

// TestChainThatWasReorganised: blocks that were orphaned since are differences, of the logs and of the totals, which
// are read at the newest of them.
func TestChainThatWasReorganised(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	must(t, devchain.Reorg(t.Context(), v.url, 3))
	report, err := v.compare(v.url, cursor, records)
	must(t, err)
	for i, number := range []uint64{v.height - 2, v.height, v.height, v.height} {
		if c := report.Checks[i]; !strings.HasPrefix(c.Difference, fmt.Sprintf("block %d with hash", number)) ||
			!strings.Contains(c.Difference, "no longer part of the chain") {
			t.Errorf("want a difference at block %d, got %+v", number, c)
		}
	}
}

// TestNodeThatServesOrphanedBlocks: many nodes still return the logs and the state of an orphaned block. It is a
// difference anyway, and the newest block is in every sample.
func TestNodeThatServesOrphanedBlocks(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	for number, sample := range map[uint64]uint64{v.height - 5: 0, v.height: math.MaxUint64} {
		report := new(Report)
		must(t, againstChain(t.Context(), Options{Node: v.replaces(number), Sample: sample, patience: patience}, cursor,
			records, unmapped(t), report))
		if c := report.Checks[0]; !strings.HasPrefix(c.Difference, fmt.Sprintf("block %d with hash", number)) ||
			!strings.Contains(c.Difference, "no longer part of the chain") {
			t.Errorf("block %d was replaced, 1 in %d compared: want a difference, got\n%s", number, sample, report)
		}
	}
}

// replaces returns a node whose chain has another block at a height, but which still returns the logs of the old one.
func (v *devChain) replaces(number uint64) string {
	return v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		other := method == "eth_getBlockByNumber" && string(params[0]) == fmt.Sprintf("%q", hexutil.EncodeUint64(number))
		return map[string]any{"hash": common.HexToHash("0xaa")}, nil, other
	})
}

// TestNodeRequestsAreLimited: requests to a node are limited in rate, and its responses in size.
func TestNodeRequestsAreLimited(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	long := strings.Repeat("0", contracts.MaxAnswer)
	v := &devChain{t: t}
	node := v.node(func(string, []json.RawMessage) (any, any, bool) {
		calls.Add(1)
		return "0x" + long, nil, true
	})
	cursor := &event.Cursor{ChainId: chainID}
	err := againstChain(t.Context(), Options{Node: node}, cursor, nil, unmapped(t), new(Report))
	if err == nil || !strings.Contains(err.Error(), "has more than 32 MiB") || calls.Load() != 1 {
		t.Errorf("after %d calls a response that is too long gives %v", calls.Load(), err)
	}
	// Connecting uses the only request that the limit allows before the deadline.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = againstChain(ctx, Options{Node: node, RequestsPerSecond: 1e-6}, cursor, nil, unmapped(t), new(Report))
	if err == nil || !strings.Contains(err.Error(), "wait for the rate limit") || calls.Load() != 1 {
		t.Errorf("%d calls instead of one: %v", calls.Load(), err)
	}
}

// TestNodeThatHangs: a node that hangs at any request is an error.
func TestNodeThatHangs(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	for _, at := range []string{"eth_chainId", "eth_getLogs", "eth_call"} {
		free := make(chan struct{})
		node := v.node(func(method string, _ []json.RawMessage) (any, any, bool) {
			if method == at {
				<-free
			}
			return nil, nil, false
		})
		err := againstChain(t.Context(), Options{Node: node, patience: time.Second}, cursor, records, unmapped(t),
			new(Report))
		close(free)
		if err == nil || !strings.Contains(err.Error(), node+" did not respond within 1s") {
			t.Errorf("a node that hangs at %s gives %v", at, err)
		}
	}
}

// TestVerifyKeepsKeysSecret: no error contains a part of the node's URL that may be a key, and no request to the target
// of a redirect.
func TestVerifyKeepsKeysSecret(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the target of a redirect got a request with the headers %v", r.Header)
	}))
	t.Cleanup(target.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot POST "+r.URL.RequestURI(), http.StatusNotFound)
	}))
	t.Cleanup(echo.Close)
	for _, server := range []string{closed.URL, echo.URL, redirecting.URL} {
		for _, scheme := range []string{"http", "ws", "carrier"} {
			u, err := url.Parse(server)
			must(t, err)
			u.Scheme, u.User, u.Path, u.RawQuery = scheme, url.UserPassword("someone", "hunter2"), "/v3/secretkey",
				"apikey=secret2"
			err = againstChain(t.Context(), Options{Node: u.String(), patience: patience}, &event.Cursor{ChainId: chainID}, nil,
				unmapped(t), new(Report))
			if err == nil {
				t.Fatalf("%s responds", u)
			}
			for _, secret := range []string{"hunter2", "secret", "someone"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("of %s the error holds %q: %v", u, secret, err)
				}
			}
		}
	}
}

// unmapped returns the mappings for logs of the reference contracts only.
func unmapped(t testing.TB) *mapping.Vaults {
	t.Helper()
	vaults, err := mapping.NewVaults()
	must(t, err)
	return vaults
}
