package serve

import (
	"math"
	"net/url"
	"slices"
)

// class is the engine cost of a request. Each class has slots of its own, so cheap requests never wait behind
// expensive ones.
type class int

const (
	cheap     class = iota
	expensive       // may take a second of processor time; a cheap one takes some hundredths
	// waits for a node of the chain, which would leave a slot of the engine idle: its queries are expensive
	proving
	classes
)

// deepReach is the value of page x pageSize above which a page is expensive: the engine reads and skips all rows
// before it.
const deepReach = 2_000

// class returns the cost class of a request that needs the engine, decided by its route and parameters only. A route's
// Expensive decides for most requests; files and deep pages are always expensive. A stream is cheap while it is at the
// end of the log, and uses expensive slots while it catches up (Live.Work).
func (e *Route) class(r *Request) class {
	if e.IsFile || r.format != "" {
		return expensive
	}
	switch {
	case e.Proves != nil && e.Proves(r.query):
		return proving
	case e.Expensive != nil && e.Expensive(r.query), reach(r.query) > deepReach:
		return expensive
	}
	return cheap
}

// reach returns the number of rows of a list up to the end of the requested page, or 0 if the parameters are not
// valid.
func reach(values url.Values) uint64 {
	number := func(field string, absent uint64) uint64 {
		text := values.Get(field)
		if text == "" {
			return absent
		}
		n, _ := digits(text)
		return min(n, math.MaxUint32)
	}
	return number("page", 1) * number("pageSize", DefaultPageSize)
}

// Always is the Expensive of a route whose requests are all expensive.
func Always(url.Values) bool { return true }

// Given is the Expensive of a route whose requests are expensive if one of some parameters is given, such as a filter.
func Given(fields ...string) func(url.Values) bool {
	return func(values url.Values) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return values.Get(field) != "" })
	}
}

// PastByAmount is the Expensive of a list that is stored by amount for the newest block only: for another block, the
// engine computes the amounts of all users.
func PastByAmount(values url.Values) bool {
	return values.Get(asOfBlock) != "" && values.Get("sortBy") != "" && values.Get("sortBy") != "firstSeen"
}
