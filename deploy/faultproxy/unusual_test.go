package faultproxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/faultproxy"
)

// Unusual formats change the form of a response but not its content.
func TestUnusualFormats(t *testing.T) {
	p := newProxied(t, nil)
	const ask = `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x2"}]}`
	const askBlock = `{"jsonrpc":"2.0","id":7,"method":"eth_getBlockByNumber","params":["0x5",false]}`
	for f, want := range map[faultproxy.Fault]string{
		faultproxy.Integers: `"blockNumber":1,`, faultproxy.LeadingZeros: `"blockNumber":"0x0`, faultproxy.UpperHex: `"0X`,
		faultproxy.NoPrefix:     `"blockHash":"0000`,
		faultproxy.NullOptional: `"logIndex"`, faultproxy.MoreMembers: "l1Fee", faultproxy.RemovedLogs: `"removed":true`,
		faultproxy.PendingLogs: `"blockHash":null`,
		faultproxy.StringIDs:   `"id":"7"`, faultproxy.NullError: `"error":`, faultproxy.Marked: "\xef\xbb\xbf",
		faultproxy.OddError: `"code":"-32000"`, faultproxy.HTML: "<html>\x00",
	} {
		p.next("eth_getLogs", f)
		if _, body, err := p.post(ask); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: no %s in %s, %v", f, want, body, err)
		}
	}
	all := p.logs(rangeOf(1, 3))
	p.next("eth_getLogs", faultproxy.DoubledLogs)
	if got := p.logs(rangeOf(1, 3)); len(got) != len(all)+1 {
		t.Errorf("doubled: %d logs", len(got))
	}
	p.next("eth_getLogs", faultproxy.ShuffledLogs)
	if got := p.logs(rangeOf(1, 3)); len(got) != len(all) || slices.Equal(got, all) {
		t.Errorf("shuffled: %v", got)
	}
	p.next("eth_getBlockByNumber", faultproxy.NoBloom)
	if _, body, err := p.post(askBlock); err != nil || !strings.Contains(string(body), hash(5)) {
		t.Errorf("no bloom: %s, %v", body, err)
	}
	p.next("eth_getLogs", faultproxy.PlainText)
	if response, body, err := p.post(ask); err != nil || response.StatusCode != http.StatusNonAuthoritativeInfo ||
		!json.Valid(body) {
		t.Errorf("plain text: %+v, %v", response, err)
	}
	p.next("eth_getLogs", faultproxy.NoContent)
	if response, _, err := p.post(ask); err != nil || response.StatusCode != http.StatusNoContent {
		t.Errorf("no content: %+v, %v", response, err)
	}
	p.next("eth_getLogs", faultproxy.Packed)
	request, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || !strings.HasPrefix(string(body), "\x1f\x8b") {
		t.Errorf("packed: %.20q, %v", body, err)
	}
	const many = "[" + ask + "," + askBlock + "]"
	p.next("batch", faultproxy.OddBatch)
	var answers []any
	if _, body, err := p.post(many); err != nil || json.Unmarshal(body, &answers) != nil || len(answers) != 3 {
		t.Errorf("an odd batch: %s, %v", body, err)
	}
	for range 10 {
		p.next("batch", faultproxy.NoBatches)
		if _, body, err := p.post(many); err == nil && strings.Contains(string(body), hash(5)) {
			t.Errorf("a batch is answered: %s", body)
		}
	}
	if err := p.Next("eth_getLogs", faultproxy.NoBatches); err == nil {
		t.Error("a single call can be a batch")
	}
}
