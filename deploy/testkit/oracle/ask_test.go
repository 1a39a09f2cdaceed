package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

var twoPartners = []Partner{{ID: 1, Name: "One", APIKey: "nk_test_One"}, {ID: 2, Name: "Two", APIKey: "nk_test_Two"}}

// aboutWritten asks about the hand-written history as of its block 9.
func aboutWritten(t *testing.T) *questions {
	t.Helper()
	return &questions{Moment: Moment{Block: 9, Seq: 44, AsOf: url.Values{"asOfBlock": {"9"}}},
		state: mustAt(t, written(), 9)}
}

// sent is an answer of the simulated API before it is sent, for a test to corrupt.
type sent struct {
	status int
	header http.Header
	body   string
}

// serveExpected serves what the questions expect, so that every difference found was made by spoil.
func serveExpected(t *testing.T, list []Question, spoil func(q Question, s *sent)) *Client {
	t.Helper()
	byRequest := map[string]Question{}
	for _, q := range list {
		byRequest[q.key+" "+q.path+"?"+q.query.Encode()] = q
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, known := byRequest[r.Header.Get("x-api-key")+" "+r.URL.Path+"?"+r.URL.RawQuery]
		if !known {
			t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		}
		id := r.Header.Get("X-Request-Id")
		body, err := json.Marshal(fillTexts(q.want.bodyFor(id)))
		if err != nil {
			t.Error(err)
		}
		s := &sent{q.want.Status, http.Header{}, string(body)}
		s.header.Set("Content-Type", "application/json; charset=utf-8")
		s.header.Set("X-Request-Id", id)
		s.header.Set("X-Indexed-Block", q.want.block)
		s.header.Set("X-Indexed-Seq", q.want.seq)
		var links []string
		for relation, page := range q.want.links {
			query := q.view()
			query.Set("page", fmt.Sprint(page))
			links = append(links, fmt.Sprintf(`<%s?%s>; rel="%s"`, q.path, query.Encode(), relation))
		}
		if links != nil {
			s.header.Set("Link", strings.Join(links, ", "))
		}
		spoil(q, s)
		for name, values := range s.header {
			w.Header()[name] = values
		}
		w.WriteHeader(s.status)
		_, _ = bytes.NewBufferString(s.body).WriteTo(w)
	}))
	t.Cleanup(server.Close)
	return &Client{Base: server.URL, HTTP: server.Client()}
}

// view returns a copy of the parameters, with the effective page size.
func (q Question) view() url.Values {
	query := url.Values{"pageSize": {"20"}}
	for name, values := range q.query {
		query[name] = values
	}
	return query
}

// fillTexts puts words wherever the oracle expects any text.
func fillTexts(tree any) any {
	switch v := tree.(type) {
	case Text:
		return "some words"
	case Object:
		o := Object{}
		for name, value := range v {
			o[name] = fillTexts(value)
		}
		return o
	case []any:
		list := []any{}
		for _, value := range v {
			list = append(list, fillTexts(value))
		}
		return list
	}
	return tree
}

func TestAnAPIThatIsRightShowsNoDifference(t *testing.T) {
	list := append(aboutWritten(t).everything(twoPartners), aboutWritten(t).refusals(twoPartners[0])...)
	outcome, err := serveExpected(t, list, func(Question, *sent) {}).Ask(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range outcome.Differences {
		t.Error(line)
	}
	if len(outcome.Seqs) != 1 || !outcome.Seqs[44] {
		t.Errorf("the seqs are %v", outcome.Seqs)
	}
	t.Logf("%d questions", len(list))
}

func TestEveryEndpointIsAsked(t *testing.T) {
	newest := &questions{state: mustAt(t, written(), 9)}
	asked := map[string]bool{}
	for _, q := range newest.everything(twoPartners[:1]) {
		path := q.path
		for _, address := range []string{vaultA.Hex(), vaultB.Hex(), anna.Hex(), bert.Hex(), unusedAddress.Hex()} {
			path = strings.ReplaceAll(path, address, "{address}")
		}
		if q.want.Status == http.StatusOK {
			asked[strings.TrimPrefix(path, api)+map[bool]string{true: " with key"}[q.key != ""]] = true
		}
	}
	for _, endpoint := range []string{
		"/vaults", "/vaults/{address}", "/vaults/{address}/nav", "/vaults/{address}/deposits",
		"/vaults/{address}/withdrawals",
		"/vaults/{address}/users", "/vaults/{address}/series", "/users", "/users/{address}", "/users/{address}/deposits",
		"/users/{address}/withdrawals",
		"/queues/withdrawals", "/queues/deposits", "/settlement/summary",
		"/partner/vaults with key", "/partner/vaults/{address}/nav with key", "/partner/stats with key",
		"/partner/deposits with key", "/partner/router with key",
	} {
		if !asked[endpoint] {
			t.Errorf("%s is never asked", endpoint)
		}
		delete(asked, endpoint)
	}
	if len(asked) != 0 {
		t.Errorf("there are no such endpoints: %v", asked)
	}
}

// TestASpoiltAnswerIsReported corrupts one answer at a time, and expects one line that names the place.
func TestASpoiltAnswerIsReported(t *testing.T) {
	deposits := api + "/users/" + bert.Hex() + "/deposits"
	replace := func(from, to string) func(*sent) {
		return func(s *sent) {
			if !strings.Contains(s.body, from) {
				t.Errorf("%s does not hold %s", s.body, from)
			}
			s.body = strings.Replace(s.body, from, to, 1)
		}
	}
	header := func(name, value string) func(*sent) { return func(s *sent) { s.header.Set(name, value) } }
	for name, try := range map[string]struct {
		spoil func(*sent)
		want  string
	}{
		"a changed field": {replace(`"assetAmount":"50"`, `"assetAmount":"51"`),
			`data[1].assetAmount: expected "50", got "51"`},
		"a missing field":  {replace(`"sweptAt":null,`, ``), `data[0].sweptAt: expected null, got no such field`},
		"an extra field":   {replace(`"logIndex":4`, `"logIndex":4,"new":1`), `data[0].new: expected no such field, got 1`},
		"an item too many": {replace(`"data":[`, `"data":[7,`), `data[2]: expected no more items`},
		"meta":             {replace(`"total":2`, `"total":3`), `meta.total: expected 2, got 3`},
		"ok":               {replace(`"ok":true`, `"ok":false`), `ok: expected true, got false`},
		"no JSON":          {func(s *sent) { s.body = "<html>" }, `the whole: expected {`},
		"the status":       {func(s *sent) { s.status = 203 }, `expected status 200, got 203`},
		"the content type": {header("Content-Type", "text/plain"), `got "Content-Type \"text/plain\"`},
		"the request id":   {header("X-Request-Id", "mine"), `got "X-Request-Id \"mine\" in answer to`},
		"the block":        {header("X-Indexed-Block", "8"), `header X-Indexed-Block: expected 9, got "8"`},
		"the seq":          {header("X-Indexed-Seq", "45"), `header X-Indexed-Seq: expected 44, got "45"`},
		"no links": {func(s *sent) { s.header.Del("Link") },
			`header Link: the whole: expected {"first":1,"last":1}, got null`},
		"a link too many": {func(s *sent) { s.header["Link"][0] += `, <` + deposits + `?asOfBlock=9&page=2>; rel="next"` },
			`header Link: next: expected no such field, got 2`},
		"a link out of view": {header("Link",
			`<`+deposits+`?page=1>; rel="first", <`+deposits+`?asOfBlock=9&page=1>; rel="last"`),
			`header Link: first: expected 1, got -1`},
		"a link elsewhere": {header("Link",
			`<`+api+`/users?asOfBlock=9&page=1>; rel="first", <`+deposits+`?asOfBlock=9&page=1>; rel="last"`),
			`header Link: first: expected 1, got -1`},
	} {
		q := aboutWritten(t)
		q.askUser(bert)
		list := slices.DeleteFunc(q.list, func(q Question) bool { return q.path != deposits })
		outcome, err := serveExpected(t, list, func(_ Question, s *sent) { try.spoil(s) }).Ask(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(outcome.Differences, func(line string) bool { return !strings.Contains(line, try.want) })
		if len(found) != 1 || !strings.HasPrefix(found[0], "GET "+deposits+"?asOfBlock=9: ") {
			t.Errorf("%s: the differences are %q, want one with %s", name, outcome.Differences, try.want)
		}
	}
}

func TestASpoiltRefusalIsReported(t *testing.T) {
	for name, try := range map[string]struct{ from, to, want string }{
		"another code":   {"INVALID_PARAMETER", "NOT_FOUND", "error.code"},
		"another field":  {`"field":"sortBy"`, `"field":"sort"`, "error.details[0].field"},
		"no reason":      {`"reason":"some words"`, `"reason":""`, "error.details[0].reason"},
		"no message":     {`"message":"some words"`, `"message":""`, "error.message"},
		"another id":     {`"requestId":"`, `"requestId":"x`, "error.requestId"},
		"more to say":    {`"code"`, `"stack":"","code"`, "error.stack: expected no such field"},
		"all is well":    {`"ok":false`, `"ok":true`, "ok: expected false"},
		"beside it data": {`"ok":false`, `"ok":false,"data":[]`, "data: expected no such field"},
	} {
		q := aboutWritten(t)
		q.fails("", api+"/users", 400, "INVALID_PARAMETER", []string{"sortBy"}, "sortBy", "address")
		outcome, err := serveExpected(t, q.list,
			func(_ Question, s *sent) { s.body = strings.Replace(s.body, try.from, try.to, 1) }).Ask(t.Context(), q.list)
		if err != nil {
			t.Fatal(err)
		}
		if len(outcome.Differences) != 1 || !strings.Contains(outcome.Differences[0], try.want) {
			t.Errorf("%s: the differences are %q, want one with %s", name, outcome.Differences, try.want)
		}
	}
}

func TestAnAPIThatIsGoneIsAnError(t *testing.T) {
	q := aboutWritten(t)
	q.askUsers(api + "/users")
	c := serveExpected(t, q.list, func(Question, *sent) {})
	c.Base = "http://127.0.0.1:1"
	if outcome, err := c.Ask(t.Context(), q.list); err == nil {
		t.Errorf("got %v", outcome)
	}
}
