package oracle

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// TestEventIDs compares eventID with an id that another library computed.
func TestEventIDs(t *testing.T) {
	if got, want := eventID("31337:0xab:4:deposit.referral:1"), "47cf1c32-fdc0-5e38-afb9-f4f2bccf7f45"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEventsOfAHistory(t *testing.T) {
	events := written().Events(twoPartners) // up to block 6
	var got []string
	for id, event := range events {
		if event["id"] != id {
			t.Errorf("event %s calls itself %s", id, event["id"])
		}
		got = append(got, fmt.Sprint(event["type"], " ", event["partnerId"], " ", event["createdAt"]))
	}
	slices.Sort(got)
	want := []string{
		"deposit.referral 1 2026-01-01T00:03:00.000Z",
		"deposit.referral 1 2026-01-01T00:03:00.000Z",
		"withdrawal.referral 2 2026-01-01T00:05:00.000Z",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	id := eventID("7:0x0000000000000000000000000000000000000000000000000000000000000005:0:withdrawal.referral:2")
	wantJSON(t, "the request", events[id],
		`{"id":"`+id+`","version":1,"type":"withdrawal.referral","createdAt":"2026-01-01T00:05:00.000Z","partnerId":2,"data":{
		"vaultAddress":"0x1000000000000000000000000000000000000001","userAddress":"0x3000000000000000000000000000000000000003","shares":"10","assetsEstimate":"11",
		"requestIndex":"0","txHash":"0x0000000000000000000000000000000000000000000000000000000000000005","blockNumber":"5","logIndex":0,"timestamp":"2026-01-01T00:05:00.000Z"}}`)
	id = eventID("7:0x0000000000000000000000000000000000000000000000000000000000000003:0:deposit.referral:1")
	wantJSON(t, "the deposit", events[id],
		`{"id":"`+id+`","version":1,"type":"deposit.referral","createdAt":"2026-01-01T00:03:00.000Z","partnerId":1,"data":{
		"vaultAddress":"0x1000000000000000000000000000000000000001","userAddress":"0x4000000000000000000000000000000000000004","assets":"50","shares":"45",
		"txHash":"0x0000000000000000000000000000000000000000000000000000000000000003","blockNumber":"3","logIndex":0,"timestamp":"2026-01-01T00:03:00.000Z"}}`)
	for _, try := range []struct {
		final    uint64
		partners []Partner
		want     int
	}{{6, twoPartners, 3}, {4, twoPartners, 2}, {2, twoPartners, 0}, {6, twoPartners[:1], 2}, {6, nil, 0}} {
		h := written()
		h.Final = try.final
		if got := len(h.Events(try.partners)); got != try.want {
			t.Errorf("final %d, %d partners: %d events, want %d", try.final, len(try.partners), got, try.want)
		}
	}
}
