package httpapi

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
)

// class is what a request costs the engine. Each class has slots of its own: however many
// expensive requests wait, a cheap one does not wait behind them.
type class int

const (
	cheap     class = iota
	expensive       // may take a second of processor time, where a cheap one takes some hundredths
	proving         // waits for a node of the chain, which would keep a slot of the engine idle
	classes
)

// deepReach is page x pageSize from which a page is expensive: the engine reads and skips
// all rows before it.
const deepReach = 2_000

// class decides what a request costs, from its route and parameters only. What a route says
// of itself is in its Expensive. Files, long answers and deep pages are expensive on every
// route. A stream is cheap while it is at the end of the log, and says itself when it
// catches up (Live.Work).
func (e *Route) class(r *Request) class {
	if r.HTTP.Method == http.MethodPost {
		return cheap
	}
	if e.Streamed || e.IsFile || r.format != "" {
		return expensive
	}
	values, err := url.ParseQuery(r.HTTP.URL.RawQuery)
	switch {
	case err != nil: // answered 400
		return cheap
	case e.Proves != nil && e.Proves(values):
		return proving
	case e.Expensive != nil && e.Expensive(values), reach(values) > deepReach:
		return expensive
	}
	return cheap
}

// reach is how many rows of a list end with the page that is asked for; 0 if the parameters
// are not valid.
func reach(values url.Values) uint64 {
	number := func(field string, absent uint64) uint64 {
		text := values.Get(field)
		if text == "" {
			return absent
		}
		n, _ := strconv.ParseUint(text, 10, 64)
		return min(n, math.MaxUint32)
	}
	return number("page", 1) * number("pageSize", DefaultPageSize)
}

// Always is the Expensive of a route all of whose questions are.
func Always(url.Values) bool { return true }

// PastByAmount is the Expensive of a list that stands sorted by amount for the newest block
// only: as of another block, the engine adds up everybody.
func PastByAmount(values url.Values) bool {
	return values.Get(asOfBlock) != "" && values.Get("sortBy") != "" && values.Get("sortBy") != "firstSeen"
}
