package query

import (
	"fmt"
	"net/url"
	"testing"
	"time"
)

// TestBlockOfATime: the block returned for a time contains everything up to that time and nothing later; without a
// time it is the block of the answer.
func TestBlockOfATime(t *testing.T) {
	w := newFixture(t)
	at := func(query string) object {
		t.Helper()
		return w.get("/api/v1/block" + query).Data(t).(object)
	}
	newest := at("")
	same(t, "without a time", newest["blockNumber"], w.get("/status").Data(t).(object)["indexedBlock"])
	same(t, "as of a block", at("?asOfBlock=9")["blockNumber"], "9")
	same(t, "in the future", at("?time=2099-01-01"), newest)
	events := w.get("/api/v1/events?pageSize=100").Data(t).([]any)
	for _, e := range events {
		event := e.(object)
		when, err := time.Parse(time.RFC3339, event["timestamp"].(string))
		if err != nil {
			t.Fatal(err)
		}
		block := at("?time=" + url.QueryEscape(event["timestamp"].(string)))["blockNumber"].(string)
		for _, o := range events {
			other := o.(object)
			at, _ := time.Parse(time.RFC3339, other["timestamp"].(string))
			if number(t, other["blockNumber"]) <= number(t, block) == at.After(when) {
				t.Errorf("at %s: block %s, and block %s has an event of %s", when, block, other["blockNumber"], at)
			}
		}
	}
	w.get("/api/v1/block?time=2001-01-01").Failed(t, 404, "NOT_FOUND")
	w.get("/api/v1/block?time=yesterday").Failed(t, 400, "INVALID_PARAMETER")
}

func number(t *testing.T, text any) (n uint64) {
	t.Helper()
	if _, err := fmt.Sscan(text.(string), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFundingIsOfItsRequests: the figures match the requests of the vault, at each block.
func TestFundingIsOfItsRequests(t *testing.T) {
	w := newFixture(t)
	blocks := number(t, w.get("/status").Data(t).(object)["indexedBlock"])
	some := 0
	for block := uint64(5); block <= blocks; block++ {
		as := fmt.Sprintf("asOfBlock=%d", block)
		requests := w.get("/api/v1/vaults/" + vaultA.Hex() + "/withdrawals?pageSize=100&" + as).Data(t).([]any)
		var waits []int64
		for _, r := range requests {
			request := r.(object)
			if request["fundedAt"] == nil {
				continue
			}
			from, _ := time.Parse(time.RFC3339, request["requestedAt"].(string))
			to, _ := time.Parse(time.RFC3339, request["fundedAt"].(string))
			waits = append(waits, int64(to.Sub(from).Seconds()))
		}
		got := w.get("/api/v1/vaults/" + vaultA.Hex() + "/funding?" + as).Data(t).(object)
		same(t, as+", requests and funded", []any{got["requests"], got["funded"]},
			[]any{float64(len(requests)), float64(len(waits))})
		if len(waits) == 0 {
			same(t, as+", without one", []any{got["medianSeconds"], got["longestSeconds"]}, []any{nil, nil})
			continue
		}
		some++
		lowest, longest := 0, waits[0]
		for _, wait := range waits {
			longest = max(longest, wait)
			below := 0
			for _, other := range waits {
				if other < wait {
					below++
				}
			}
			if below <= (len(waits)-1)/2 {
				lowest = max(lowest, int(wait))
			}
		}
		same(t, as+", median and longest", []any{got["medianSeconds"], got["longestSeconds"]},
			[]any{float64(lowest), float64(longest)})
	}
	if some == 0 {
		t.Error("no block has a funded request")
	}
	w.get("/api/v1/vaults/"+unknown.Hex()+"/funding").Failed(t, 404, "NOT_FOUND")
}

// TestDeliveriesAreFilteredOnTheServer: a filter applies to all deliveries, not only to those of a page: in the list,
// in its count and in the file. Several filters are combined with and.
func TestDeliveriesAreFilteredOnTheServer(t *testing.T) {
	w := newFixture(t)
	key := w.partner(7, "Seven & Sons")
	other := w.partner(8, "Eight")
	w.deliveries()
	const path = webhooksPath + "/deliveries"
	all := w.get(path+"?pageSize=100", "x-api-key", key).Data(t).([]any)
	ids := func(holds func(object) bool) []any {
		out := []any{}
		for _, d := range all {
			if holds(d.(object)) {
				out = append(out, d.(object)["eventId"])
			}
		}
		return out
	}
	field := func(name, value string) func(object) bool { return func(d object) bool { return d[name] == value } }
	for query, want := range map[string][]any{
		"state=failed": ids(field("state", "failed")), "state=delivered": ids(field("state", "delivered")),
		"type=webhook.test":              ids(field("type", "webhook.test")),
		"state=failed&type=webhook.test": {},
		"from=2024-01-02":                ids(func(d object) bool { return d["createdAt"].(string) >= "2024-01-02" }),
		"to=2024-01-01":                  ids(func(d object) bool { return d["createdAt"].(string) < "2024-01-02" }),
		"tx=" + tx(250).Hex():            {},
	} {
		r := w.get(path+"?"+query, "x-api-key", key)
		got := []any{}
		for _, d := range r.Data(t).([]any) {
			got = append(got, d.(object)["eventId"])
		}
		same(t, query, got, want)
		same(t, query+", total", r.JSON(t)["meta"].(object)["total"], float64(len(want)))
		// With one per page: the filter is applied before paging.
		if len(want) > 0 {
			last := w.get(fmt.Sprintf("%s?%s&pageSize=1&page=%d", path, query, len(want)), "x-api-key", key).Data(t).([]any)
			same(t, query+", last page", last[0].(object)["eventId"], want[len(want)-1])
		}
	}
	for _, query := range []string{"state=lost", "type=x", "tx=0x12", "from=2024-01-02&to=2024-01-01"} {
		w.get(path+"?"+query, "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
	}
	same(t, "of another partner", w.get(path+"?state=failed", "x-api-key", other).Data(t), []any{})
}

// TestDeliveryShowsRequestAndResponses: a delivery shows the request and the responses, but only to its own
// partner.
func TestDeliveryShowsRequestAndResponses(t *testing.T) {
	w := newFixture(t)
	key, other := w.partner(7, "Seven & Sons"), w.partner(8, "Eight")
	w.deliveries()
	const id = "00000000-0000-5000-8000-000000000002"
	const path = webhooksPath + "/deliveries/" + id
	w.exec(`UPDATE attempt SET response = decode('6f6bff', 'hex'), dns_us = 1, connect_us = 2, tls_us = 3, first_byte_us = 4 WHERE event_id = '` + id + `' AND number = 1`)
	got := w.get(path, "x-api-key", key).Data(t).(object)
	for _, d := range w.get(webhooksPath+"/deliveries", "x-api-key", key).Data(t).([]any) {
		if listed := d.(object); listed["eventId"] == id {
			for name, value := range listed {
				if name != "attempts" {
					same(t, name, got[name], value)
				}
			}
		}
	}
	attempts := got["attempts"].([]any)
	first, second := attempts[0].(object), attempts[1].(object)
	same(t, "response, as text", first["response"], "ok\uFFFD")
	same(t, "phases", []any{first["dnsUs"], first["connectUs"], first["tlsUs"], first["firstByteUs"]},
		[]any{1.0, 2.0, 3.0, 4.0})
	same(t, "no response", []any{second["status"], second["response"], second["error"]}, []any{nil, nil, "timeout"})
	request := got["request"].(object)
	same(t, "headers", request["headers"],
		object{"Content-Type": "application/json", "X-Service-Event-Id": id, "X-Service-Event-Type": "deposit.referral",
			"X-Service-Sequence": "2"})
	var body string
	if err := w.pool.QueryRow(t.Context(),
		`SELECT convert_from(body, 'UTF8') FROM delivery WHERE event_id = '`+id+`'`).Scan(&body); err != nil {
		t.Fatal(err)
	}
	same(t, "body", request["body"], body)
	w.get(path, "x-api-key", other).Failed(t, 404, "NOT_FOUND")
	w.get(webhooksPath+"/deliveries/00000000-0000-5000-8000-0000000000ff", "x-api-key", key).Failed(t, 404, "NOT_FOUND")
	w.get(webhooksPath+"/deliveries/2", "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
}
