package oracle

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Question is one GET request to the API and its expected answer.
type Question struct {
	path  string
	query url.Values
	key   string // x-api-key; empty: not sent
	want  Answer
	state *State // that it is about
}

// An Answer is a response of the API, or what is expected of it.
type Answer struct {
	Status int
	// body is the JSON; in an expected error, requestId is set to the one that was sent.
	body any
	// links are the page numbers of the header Link, by relation; nil: no such header.
	links map[string]int
	// Values of X-Indexed-Block and X-Indexed-Seq. Empty expected values are not compared.
	block, seq string
	id         string // of the request, which an error names

	// The rest is not compared.

	// Generation of the read models that produced it, or "".
	Generation string
	// Patient: it has Retry-After.
	Patient bool
}

// Seq returns the seq of the log that the answer is about, or 0 if the answer has none.
func (a Answer) Seq() uint64 { return number(a.seq) }

// Block returns the block that the answer is about, or 0 if the answer has none.
func (a Answer) Block() uint64 { return number(a.block) }

// number parses a header as a number; it returns 0 if it is not one.
func number(header string) uint64 {
	n, err := strconv.ParseUint(header, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (q Question) String() string {
	if len(q.query) == 0 {
		return "GET " + q.path
	}
	return "GET " + q.path + "?" + q.query.Encode()
}

// questions collects what to ask about a state.
type questions struct {
	Moment
	state *State
	list  []Question
}

// with combines parameters, given as name, value, name, value, with those of the moment.
func (q *questions) with(pairs ...string) url.Values {
	values := url.Values{}
	for name, value := range q.AsOf {
		values[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

// found is the answer about the moment with this body.
func (q *questions) found(body Object) Answer {
	a := Answer{Status: http.StatusOK, body: body, block: decimal(q.Block)}
	if q.Seq != 0 {
		a.seq = decimal(q.Seq)
	}
	return a
}

// one requests something without pages. What does not exist is refused with 404.
func (q *questions) one(p Partner, path string, pairs ...string) {
	query := q.with(pairs...)
	data := q.state.answer(path, query, span{}, p)
	if data == nil {
		q.fails(p.APIKey, path, http.StatusNotFound, "NOT_FOUND", nil, pairs...)
		return
	}
	q.list = append(q.list, Question{
		path: path, query: query, key: p.APIKey, want: q.found(Object{"ok": true, "data": data}), state: q.state,
	})
}

// fails requests something that must be rejected. fields are those that details must name.
func (q *questions) fails(key, path string, status int, code string, fields []string, pairs ...string) {
	refusal := Object{"code": code, "message": Text{}, "requestId": Text{}}
	if fields != nil {
		details := []any{}
		for _, field := range fields {
			details = append(details, Object{"field": field, "reason": Text{}})
		}
		refusal["details"] = details
	}
	q.list = append(q.list, Question{
		path: path, query: q.with(pairs...), key: key,
		want: Answer{Status: status, body: Object{"ok": false, "error": refusal}},
	})
}

const (
	defaultPageSize = 20
	maxPageSize     = 100
)

// page requests one page of a list. Size 0 and number 0 are not sent.
func (q *questions) page(p Partner, path string, all []any, number, size int, pairs ...string) {
	query := q.with(pairs...)
	if number > 0 {
		query.Set("page", strconv.Itoa(number))
	}
	if size > 0 {
		query.Set("pageSize", strconv.Itoa(size))
	}
	if number == 0 {
		number = 1
	}
	if size == 0 {
		size = defaultPageSize
	}
	pages := (len(all) + size - 1) / size
	from, to := min((number-1)*size, len(all)), min(number*size, len(all))
	links := map[string]int{"first": 1, "last": max(pages, 1)}
	if number > 1 {
		links["prev"] = min(number-1, max(pages, 1))
	}
	if number < pages {
		links["next"] = number + 1
	}
	want := q.found(Object{"ok": true, "data": append([]any{}, all[from:to]...), "meta": Object{
		"page": integer(uint(number)), "pageSize": integer(uint(size)), "total": integer(len(all)),
		"totalPages": integer(pages), "hasNextPage": number < pages,
	}})
	want.links = links
	q.list = append(q.list, Question{path: path, query: query, key: p.APIKey, want: want, state: q.state})
}

// pages requests a list without any parameter, then for all its pages of a given size, and for the one after the last;
// if brief, for the first page of the largest size.
func (q *questions) pages(p Partner, path string, size int, pairs ...string) {
	if q.Brief {
		q.whole(p, path, pairs...)
		return
	}
	all := q.state.answer(path, q.with(pairs...), span{}, p).([]any)
	q.page(p, path, all, 0, 0, pairs...)
	last := (len(all) + size - 1) / size
	for number := 1; number <= last+1; number++ {
		q.page(p, path, all, number, size, pairs...)
	}
}

// whole requests the first page of the largest size.
func (q *questions) whole(p Partner, path string, pairs ...string) {
	q.within(p, path, span{}, pairs...)
}

// within is whole with a time range.
func (q *questions) within(p Partner, path string, in span, pairs ...string) {
	pairs = append(in.pairs(), pairs...)
	q.page(p, path, q.state.answer(path, q.with(pairs...), in, p).([]any), 0, maxPageSize, pairs...)
}

// A span is a time range, both ends included, as a client writes it.
type span struct {
	from, to     string // empty: unbounded
	fromMs, toMs int64
}

func (s span) pairs() []string {
	if s == (span{}) {
		return nil
	}
	return []string{"from", s.from, "to", s.to}
}

// holds reports whether a block with that time is in the range. An empty parameter counts as absent.
func (s span) holds(unixSeconds uint64) bool {
	ms := int64(unixSeconds) * 1000
	return (s.from == "" || s.fromMs <= ms) && (s.to == "" || ms <= s.toMs)
}

// spans returns ranges around the times of a list, which are in ascending order, in every format of from and to.
func spans(times []uint64) []span {
	first, middle, last := times[0], times[len(times)/2], times[len(times)-1]
	ms := func(seconds uint64) int64 { return int64(seconds) * 1000 }
	later := max(middle, first+1) // at least half a second after the first
	firstDay, lastDay := first-first%86400, last-last%86400
	return []span{
		{from: stamp(ms(middle), 0), fromMs: ms(middle)},
		{from: stamp(ms(middle)+1, 0), fromMs: ms(middle) + 1},
		{to: stamp(ms(middle), 0), toMs: ms(middle)},
		{to: stamp(ms(middle)-1, 0), toMs: ms(middle) - 1},
		{from: stamp(ms(first)+500, 120), fromMs: ms(first) + 500, to: stamp(ms(later), -330), toMs: ms(later)},
		{from: decimal(middle), fromMs: ms(middle), to: decimal(last), toMs: ms(last)},
		{from: strconv.FormatInt(ms(middle), 10), fromMs: ms(middle), to: strconv.FormatInt(ms(middle), 10),
			toMs: ms(middle)},
		{from: strconv.FormatInt(ms(middle)+1, 10), fromMs: ms(middle) + 1},
		{from: date(lastDay), fromMs: ms(lastDay)},
		{to: date(firstDay), toMs: ms(firstDay+86400) - 1},
		{from: date(firstDay), fromMs: ms(firstDay), to: date(firstDay), toMs: ms(firstDay+86400) - 1},
		{from: date(firstDay), fromMs: ms(firstDay), to: date(lastDay), toMs: ms(lastDay+86400) - 1},
		{to: decimal(first - 1), toMs: ms(first - 1)},
	}
}

// stamp formats a time in RFC 3339 with an offset from UTC in minutes.
func stamp(unixMs int64, offset int) string {
	zone := time.UTC
	if offset != 0 {
		zone = time.FixedZone("", offset*60)
	}
	return time.UnixMilli(unixMs).In(zone).Format("2006-01-02T15:04:05.999Z07:00")
}

func date(unixSeconds uint64) string { return instant(unixSeconds)[:len("2006-01-02")] }
