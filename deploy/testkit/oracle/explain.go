package oracle

import (
	"context"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
)

// Explain asks which events produced the numbers of an expected answer, reads the logs that the API names, and adds
// them up. It returns every difference, and how many numbers there were. get is Client.Get or a wrapper of it, whose
// errors are returned.
func Explain(ctx context.Context, get func(context.Context, Question) (Answer, error),
	q Question) (differences []string, numbers int, err error) {
	whole, _ := q.want.body.(Object)
	if q.want.Status != http.StatusOK {
		return nil, 0, nil
	}
	for _, n := range Numbers(q.path, whole) {
		found, err := walk(ctx, get, q, n)
		if err != nil {
			return nil, 0, err
		}
		differences, numbers = append(differences, found...), numbers+1
	}
	return differences, numbers, nil
}

// explained is the page size of an explanation: small, so that there are several pages.
const explained = 3

// walk reads the explanation of one number, page by page.
func walk(ctx context.Context, get func(context.Context, Question) (Answer, error), q Question,
	n Number) (differences []string, err error) {
	of, vault := q.path, q.query.Get("vault")
	if vault != "" {
		of += "?" + url.Values{"vault": {vault}}.Encode()
	}
	sum, last, events := new(big.Int), "0", 0
	for page := 1; ; page++ {
		ask := Question{path: api + "/explain", key: q.key,
			query: url.Values{"of": {of}, "field": {n.Field}, "page": {strconv.Itoa(page)},
				"pageSize": {strconv.Itoa(explained)}}}
		if block := q.query.Get("asOfBlock"); block != "" {
			ask.query.Set("asOfBlock", block)
		}
		differ := func(format string, args ...any) {
			differences = append(differences, ask.String()+": "+fmt.Sprintf(format, args...))
		}
		got, err := get(ctx, ask)
		if err != nil {
			return nil, err
		}
		if !q.explains(n) {
			if got.Status != http.StatusNotFound {
				differ("expected status 404, got %d: %v", got.Status, got.body)
			}
			return differences, nil
		}
		if got.Status != http.StatusOK || got.seq != q.want.seq || got.block != q.want.block {
			differ("expected status 200 of seq %s and block %s, got %d of %s and %s: %v", q.want.seq, q.want.block, got.Status,
				got.seq, got.block, got.body)
			return differences, nil
		}
		data, meta := got.body.(Object)["data"].(Object), got.body.(Object)["meta"].(Object)
		for _, one := range data["events"].([]any) {
			e := one.(Object)
			if change, ok := new(big.Int).SetString(fmt.Sprint(e["change"]), 10); ok { // for firstSeen it is a time
				if sum.Add(sum, change); e["sum"] != sum.String() {
					differ("the changes add up to %s, where the answer says %v", sum, e["sum"])
				}
			}
			last, events = fmt.Sprint(e["sum"]), events+1
		}
		if meta["hasNextPage"] == true {
			continue
		}
		switch {
		case n.Value == nil && (data["value"] != nil || events > 0):
			differ("expected no value and no log, got %v of %d", data["value"], events)
		case n.Value != nil && (data["value"] != fmt.Sprint(n.Value) || last != fmt.Sprint(n.Value)):
			differ("expected %v, got the value %v and the last sum %s of %d logs", n.Value, data["value"], last, events)
		case meta["total"] != integer(uint(events)):
			differ("the pages have %d logs, and the total is %v", events, meta["total"])
		}
		return differences, nil
	}
}
