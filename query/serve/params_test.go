package serve

import (
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

func fields(p *Params) string {
	var names []string
	for _, f := range p.faults {
		names = append(names, f.Field)
	}
	return strings.Join(names, " ")
}

func TestPageParameters(t *testing.T) {
	for query, want := range map[string]struct {
		page   Page
		faults string
	}{
		"":                          {Page{1, 20}, ""},
		"page=&pageSize=":           {Page{1, 20}, ""},
		"page=3&pageSize=7":         {Page{3, 7}, ""},
		"page=2&page=x":             {Page{2, 20}, ""}, // the first value counts
		"page=x&page=1":             {Page{1, 20}, "page"},
		"page=&page=9":              {Page{1, 20}, ""},
		"page":                      {Page{1, 20}, ""},
		"pageSize=1":                {Page{1, 1}, ""},
		"pageSize=-5":               {Page{1, 20}, "pageSize"},
		"pageSize=1e1":              {Page{1, 20}, "pageSize"},
		"pageSize=100&page=1000":    {Page{1000, 100}, ""},
		"pageSize=100&page=1001":    {Page{1, 100}, "page"},
		"page=5000":                 {Page{5000, 20}, ""},
		"page=5001":                 {Page{1, 20}, "page"},
		"page=100000&pageSize=1":    {Page{100000, 1}, ""},
		"page=99999999999999999999": {Page{1, 20}, "page"},
		"page=0":                    {Page{1, 20}, "page"},
		"page=-1":                   {Page{1, 20}, "page"},
		"page=%2B1":                 {Page{1, 20}, "page"},
		"page=1.0":                  {Page{1, 20}, "page"},
		"page=1e3":                  {Page{1, 20}, "page"},
		"page=0x1":                  {Page{1, 20}, "page"},
		"page=+1":                   {Page{1, 20}, "page"},
		"page=%D9%A1":               {Page{1, 20}, "page"}, // an Arabic 1
		"pageSize=0":                {Page{1, 20}, "pageSize"},
		"pageSize=101":              {Page{1, 20}, "pageSize"},
		"pageSize=all&page=no":      {Page{1, 20}, "page pageSize"},
	} {
		p := sent(query)
		if got := p.Page(); got != want.page || fields(p) != want.faults {
			t.Errorf("%q: page %v and faults %q, want %v and %q", query, got, fields(p), want.page, want.faults)
		}
	}
}

// sent returns the parameters of a query string.
func sent(query string) *Params {
	return newParams((&url.URL{RawQuery: query}).Query())
}

func TestTimeParameters(t *testing.T) {
	const day = 1709164800                        // 2024-02-29T00:00:00Z
	for value, want := range map[string][2]int64{ // as from, as to
		"2024-02-29":                     {day, day + 86399},
		"2024-02-29T00:00:00Z":           {day, day},
		"2024-02-29T00:00:00.5Z":         {day + 1, day},
		"2024-02-29T02:00:00+02:00":      {day, day},
		"2024-02-29T00:00:00.000000001Z": {day + 1, day},
		"1709164800":                     {day, day},
		"1709164800000":                  {day, day},
		"1709164800001":                  {day + 1, day},
		"0":                              {0, 0},
		"":                               {0, math.MaxInt64},
	} {
		from, to := sent("from="+url.QueryEscape(value)), sent("to="+url.QueryEscape(value))
		if got := from.Span().From; got != want[0] || len(from.faults) > 0 {
			t.Errorf("from=%q: %d, faults %v; should be %d", value, got, from.faults, want[0])
		}
		if got := to.Span().To; got != want[1] || len(to.faults) > 0 {
			t.Errorf("to=%q: %d, faults %v; should be %d", value, got, to.faults, want[1])
		}
	}
	for _, value := range []string{
		"2024-02-30", "2024-2-9", "2024-13-01", "29.02.2024", "2024-02-29T00:00:00", "2024-02-29 00:00:00Z",
		"2024-02-29T0:00:00Z",
		"2024-02-29T00:00:00,5Z", "2024-02-29T24:00:00Z", "2024-02-29T00:00:00.1234567890Z", "9999-12-31T23:59:59-00:01",
		"0000-01-01T00:00:00+00:01", "12345678901", "123456789012", "12345678901234", "-1", "+1", "1e9", "now", "0x10", "１",
	} {
		p := sent("from=" + url.QueryEscape(value) + "&to=" + url.QueryEscape(value))
		if p.Span(); fields(p) != "from to" {
			t.Errorf("%q: faults %q, should be both", value, fields(p))
		}
	}
	for query, faults := range map[string]string{
		"from=2024-02-29&to=2024-02-29":                       "", // that day
		"from=2024-02-29T12:00:00Z&to=2024-02-29":             "",
		"from=2024-03-01&to=2024-02-29":                       "from",
		"from=2&to=1":                                         "from",
		"from=2024-02-29T00:00:00.2Z&to=2024-02-29T00:00:00Z": "from",
		"from=x&to=1":                                         "from",
	} {
		p := sent(query)
		if p.Span(); fields(p) != faults {
			t.Errorf("%s: faults %q, should be %q", query, fields(p), faults)
		}
	}
}

func TestAddresses(t *testing.T) {
	want := common.HexToAddress("0xAbcdefABCDEF0123456789abcdef0123456789aB")
	for _, good := range []string{"0xabcdefabcdef0123456789abcdef0123456789ab",
		"0xABCDEFABCDEF0123456789ABCDEF0123456789AB", "0xAbcdefABCDEF0123456789abcdef0123456789aB"} {
		p := sent("vault=" + good)
		if got := p.Filter("vault"); got == nil || *got != want || p.Err() != nil {
			t.Errorf("%s: %v, %v", good, got, p.Err())
		}
	}
	for _, bad := range []string{"abcdefabcdef0123456789abcdef0123456789ab", "0Xabcdefabcdef0123456789abcdef0123456789ab",
		"0xabcdefabcdef0123456789abcdef0123456789a",
		"0xabcdefabcdef0123456789abcdef0123456789abc", "0xabcdefabcdef0123456789abcdef0123456789ag", "0x", "vitalik.eth",
		"%000"} {
		p := sent("vault=" + bad)
		p.Filter("vault")
		if f, ok := p.Err().(*Failure); !ok || f.Code != "INVALID_ADDRESS" || f.Status != 400 {
			t.Errorf("%s: %v", bad, p.Err())
		}
	}
	p := sent("page=x&vault=y&status=z")
	p.Page()
	p.Filter("vault")
	p.OneOf("status", "", "queued", "claimed", "cancelled")
	if f := p.Err().(*Failure); f.Code != "INVALID_ADDRESS" || fields(p) != "page vault status" {
		t.Errorf("not all mistakes of a request are reported at once: %v %q", f, fields(p))
	}
	if sent("vault=").Filter("vault") != nil {
		t.Error("an empty vault is not a filter")
	}
}

func FuzzParams(f *testing.F) {
	for _, seed := range []string{"page=1&pageSize=100&from=2024-01-01&to=1709164800000&vault=0xabcdefabcdef0123456789abcdef0123456789ab", "page=%zz&&=&", "from=9999-12-31T23:59:59Z&to=0000-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := sent(query)
		page, span := p.Page(), p.Span()
		p.Filter("vault")
		order := p.OneOf("sortOrder", "desc", "asc", "desc")
		block := p.asOfBlock(&state.Snapshot{First: 5, Block: 10})
		if page.Number < 1 || page.Size < 1 || page.Size > 100 || page.Number*page.Size > 100_000 {
			t.Errorf("page %v", page)
		}
		if order != "asc" && order != "desc" {
			t.Errorf("order %q", order)
		}
		if block != nil && p.Err() == nil && (*block < 5 || *block > 10) {
			t.Errorf("block %d", *block)
		}
		values, _ := url.ParseQuery(query)
		if given := values.Get("page"); p.Err() == nil && given != "" && strings.Trim(given, "0123456789") != "" {
			t.Errorf("page %q was accepted", given)
		}
		if from, to := values.Get("from"), values.Get("to"); p.Err() == nil && from != "" && to != "" && span.From > span.To+1 {
			t.Errorf("from %q to %q returns %v", from, to, span)
		}
	})
}

func FuzzPathAddress(f *testing.F) {
	f.Add("0xabcdefabcdef0123456789abcdef0123456789ab")
	f.Add("%30xabcdefabcdef0123456789abcdef0123456789ab")
	f.Add("%zz")
	f.Fuzz(func(t *testing.T, raw string) {
		r := Request{Params: sent(""), vars: unescaped(map[string]string{"address": raw})}
		address, p := r.PathAddress(), r.Params
		plain, err := url.PathUnescape(raw)
		accepted := p.Err() == nil
		if should := err == nil && len(plain) == 42 && strings.EqualFold(address.Hex(), plain) && strings.HasPrefix(plain, "0x"); accepted != should {
			t.Errorf("%q: accepted is %v", raw, accepted)
		}
	})
}

func TestMillis(t *testing.T) {
	if got := Millis(time.Date(2024, 2, 29, 1, 2, 3, 4_900_000, time.FixedZone("", 3600))); got != "2024-02-29T00:02:03.004Z" {
		t.Error(got)
	}
}

// White space and invisible characters are mistakes in every parameter: the parameter counts neither as absent nor as
// another value.
func TestSloppyParameters(t *testing.T) {
	snapshot := &state.Snapshot{First: 5, Block: 10}
	for field, c := range map[string]struct {
		value string
		read  func(p *Params)
	}{
		"page":      {"1", func(p *Params) { p.Page() }},
		"pageSize":  {"5", func(p *Params) { p.Page() }},
		"vault":     {"0x00000000000000000000000000000000000000A1", func(p *Params) { p.Filter("vault") }},
		"tx":        {"0x" + strings.Repeat("0", 64), func(p *Params) { p.Hash("tx") }},
		"order":     {"asc", func(p *Params) { p.OneOf("order", "asc", "asc", "desc") }},
		"from":      {"2024-02-29", func(p *Params) { p.Span() }},
		"to":        {"2024-02-29T01:02:03Z", func(p *Params) { p.Span() }},
		"asOfBlock": {"7", func(p *Params) { p.asOfBlock(snapshot) }},
	} {
		for _, value := range []string{
			" " + c.value, c.value + " ", c.value + "\n", c.value + "\u00a0", "\u200b" + c.value, " ", "\t", "\u3000",
		} {
			p := sent(field + "=" + url.QueryEscape(value))
			if c.read(p); p.Err() == nil || fields(p) != field {
				t.Errorf("%s=%q is accepted: %v", field, value, p.Err())
			}
		}
		p := sent(field + "=" + url.QueryEscape(c.value))
		if c.read(p); p.Err() != nil {
			t.Errorf("%s=%q: %v", field, c.value, p.Err())
		}
	}
}
