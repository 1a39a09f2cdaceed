package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

func TestOpenEnvelope(t *testing.T) {
	long := `[` + strings.Repeat(`{"a":"b\\\"]}","c":[{}]},`, 1000) + `{}]`
	for _, c := range []struct {
		body, result string
		want         error
	}{
		{`{"jsonrpc":"2.0","id":7,"result":"0x1"}`, `"0x1"`, nil},
		{`{"result":null,"id":7}`, `null`, nil},
		{" \n{ \"id\" : 7 , \"result\" : [ 1 , {\"id\":8} ] } \r\n", `[ 1 , {"id":8} ]`, nil},
		{`{"id":7,"result":` + long + `,"more":{}}`, long, nil},
		{`{"id":7,"error":null,"result":false}`, `false`, nil},
		{`{"id":7,"res\u0075lt":-1.5e3}`, `-1.5e3`, nil},
		{``, ``, errTruncated},
		{`{`, ``, errTruncated},
		{`{"id":7,"result":[{"a":"`, ``, errTruncated},
		{`{"id":7,"result":[{}]`, ``, errTruncated},
		{`{"id":7,"result":tru`, ``, errTruncated},
		{`{"id":7,"result":"a\"}`, ``, errTruncated},
		{`<html><body>502 Bad Gateway</body></html>`, ``, errNotJSON},
		{`{"id":7,"result":nope}`, ``, errNotJSON},
		{`{"id":7 "result":1}`, ``, errNotJSON},
		{`{"id":7,"result":1}{}`, ``, errNotJSON},
		{`{"id":7,"result":}`, ``, errNotJSON},
		{`{7:1}`, ``, errNotJSON},
		{`upstream timeout`, ``, errNotJSON},
		{`{"id":7,"result":` + strings.Repeat("[", 9000) + `x`, ``, errNotJSON},
		{`{"message":"no such API key"}`, ``, errForeign},
		{`"busy"`, ``, errForeign},
		{`[]`, ``, errForeign},
		{`{"id":7}`, ``, errForeign},
		{`{"id":7,"error":[1]}`, ``, errForeign},
		{`{"id":8,"result":1}`, ``, errWrongCall},
		{`{"id":"8","result":1}`, ``, errWrongCall},
		{`{"id":7.5,"result":1}`, ``, errWrongCall},
		{`{"result":1}`, `1`, nil},
		{`{"id":null,"result":1}`, `1`, nil},
		{`{"id":"7","result":1}`, `1`, nil},
		{`{"id":7.0,"result":1}`, `1`, nil},
		{`{"id":7,"error":"","result":1}`, `1`, nil},
		{`{"id":7,"error":false,"result":1}`, `1`, nil},
		{`{"id":7,"error":{},"result":1}`, `1`, nil},
		{`{"id":8,"error":{"code":1,"message":"m"}}`, ``, errWrongCall},
	} {
		e, err := openEnvelope([]byte(c.body))
		var result []byte
		if err == nil {
			result, err = e.resultFor([]byte("7"))
		}
		if !errors.Is(err, c.want) || string(result) != c.result || err != nil && len(err.Error()) > 200 {
			t.Errorf("%.60q gives %.60q and %.500v, want %.60q and %v", c.body, result, err, c.result, c.want)
		}
	}
}

// A batch of many more responses than calls is rejected before it takes much memory.
func TestBatchOfManyResponses(t *testing.T) {
	body, place := []byte("["+strings.Repeat("{},", 1<<20)+"{}]"), map[string]int{"1": 0, "2": 1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := resultsOf(body, place)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errForeign) || took > 16<<20 {
		t.Errorf("%d bytes give %v and take %d bytes of memory", len(body), err, took)
	}
	twice := `{"id":1,"result":7},{"id":2,"result":8}`
	if results, err := resultsOf([]byte("["+twice+","+twice+"]"), place); err != nil || len(results) != 2 {
		t.Errorf("each response twice gives %q, %v", results, err)
	}
}

// An object of many more members than any that is read is rejected before it takes much memory and time.
func TestObjectsOfManyMembers(t *testing.T) {
	var all strings.Builder
	for i := range 1 << 18 {
		fmt.Fprintf(&all, `"%x":1,`, i)
	}
	many := all.String()
	n := noPool(wallClock).newNode(Endpoint{URL: "http://a.invalid"}, "a")
	block := fmt.Appendf(nil, `{%s"number":"0x1","hash":"0x%064x","parentHash":"0x%064x","timestamp":"0x1"}`, many, 2, 1)
	for name, read := range map[string]func() error{
		"a response": func() error {
			_, err := openEnvelope([]byte(`{` + many + `"id":7,"result":1}`))
			return err
		},
		"an error": func() error { return faultOf([]byte(`{` + many + `"code":3}`)) },
		"a block": func() error {
			_, err := n.headerAt(block, hexutil.Uint64(1))
			return err
		},
		"a block with all its fields": func() error {
			_, err := fullHeader(block)
			return err
		},
		"a log": func() error {
			_, err := decodeLogs([]byte(`[{` + many + `"removed":true}]`))
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || refused(err) || took > 16<<20 {
			t.Errorf("%s gives %v and takes %d bytes of memory", name, err, took)
		}
	}
}

func TestNodeErrorsKeepTheirParts(t *testing.T) {
	for body, want := range map[string]rpcError{
		`{"id":7,"error":{"code":-32005,"message":"query returned more than 10000 results","data":{"from":"0x1"}}}`: {-32005,
			"query returned more than 10000 results", json.RawMessage(`{"from":"0x1"}`)},
		`{"id":null,"error":{"code":-32700,"message":"parse error"}}`:         {-32700, "parse error", nil},
		`{"error":{"code":3,"message":"m","data":"0x"},"result":null,"id":7}`: {3, "m", json.RawMessage(`"0x"`)},
		`{"id":7,"error":"out of capacity"}`:                                  {0, "out of capacity", nil},
		`{"id":7,"error":{"code":"-32005","message":"limit"}}`:                {-32005, "limit", nil},
		`{"id":7,"error":{"code":-32005.0,"message":null}}`:                   {-32005, "", nil},
		`{"id":7,"error":{"code":null,"message":{"en":"limit"},"data":[1]}}`:  {0, `{"en":"limit"}`, json.RawMessage("[1]")},
		`{"id":7,"error":{"code":"LIMIT","message":"m"}}`:                     {0, "m", nil},
		`{"id":7,"error":{},"result":null}`:                                   {0, "", nil},
	} {
		e, err := openEnvelope([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		_, err = e.resultFor([]byte("7"))
		var got *rpcError
		if !errors.As(err, &got) || got.Code != want.Code || got.Message != want.Message ||
			string(got.Data) != string(want.Data) {
			t.Errorf("%s gives %+v (%v), want %+v", body, got, err, want)
		}
		if !refused(err) {
			t.Errorf("%s does not count as a refusal", body)
		}
	}
}

// A response that encoding/json accepts is opened into the same parts; any other input is an error and never panics.
func FuzzOpenEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"result":[{"data":"0x00\"\\"}]}`, `{"id":7,"error":{"code":-1,"message":"x"}}`,
		`[{"id":7,"result":1},{"id":8,"result":{}}]`,
		`{"id":7,"result":[{"a`, `<html>`, `null`, `{"a":{"b":[[[`, "{\"id\":7,\"\\u0072esult\":1}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if all, _, err := openBatch(body, MaxBatchHeaders); err == nil &&
			!bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) && len(all) != 1 {
			t.Errorf("%q is read as %d responses", body, len(all))
		}
		got, err := openEnvelope(body)
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil || len(want) > maxMembers {
			if err == nil && json.Valid(body) {
				t.Errorf("%q is not an object and gives %+v", body, got)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q is refused: %v", body, err)
		}
		for name, part := range map[string][]byte{"id": got.id, "result": got.result, "error": got.fault} {
			if !bytes.Equal(part, want[name]) {
				t.Errorf("%q has the %s %q, want %q", body, name, part, want[name])
			}
		}
	})
}

func BenchmarkOpenEnvelope(b *testing.B) {
	log := fmt.Sprintf(`{"address":"0x%040x","topics":["0x%064x","0x%064x"],"data":"0x%0128x","blockNumber":"0x1","transactionHash":"0x%064x","logIndex":"0x2","removed":false}`, 1, 2, 3, 4, 5)
	body := []byte(`{"jsonrpc":"2.0","id":7,"result":[` + strings.Repeat(log+",", 9999) + log + `]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := openEnvelope(body); err != nil {
			b.Fatal(err)
		}
	}
}
