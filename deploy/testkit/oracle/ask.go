package oracle

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A Client sends requests to the API and compares the responses.
type Client struct {
	Base string // of the API: http://host:port
	HTTP *http.Client
	Sent atomic.Int64 // questions sent so far
}

// Asked is the outcome of many questions.
type Asked struct {
	Differences []string
	Seqs        map[uint64]bool // every X-Indexed-Seq of a correct answer
}

// Ask asks all questions, some concurrently, and collects every difference. It returns only connection errors.
func (c *Client) Ask(ctx context.Context, list []Question) (Asked, error) {
	differences, seqs := make([][]string, len(list)), make([]uint64, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, q := range list {
		group.Go(func() error {
			got, err := c.Get(ctx, q)
			if err != nil {
				return err
			}
			differences[i] = q.Compare(got)
			if got.Status == http.StatusOK {
				seqs[i] = got.Seq()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Asked{}, err
	}
	outcome := Asked{Seqs: map[uint64]bool{}}
	for i := range list {
		outcome.Differences = append(outcome.Differences, differences[i]...)
		if seqs[i] != 0 {
			outcome.Seqs[seqs[i]] = true
		}
	}
	return outcome, nil
}

// Get sends a question with a request id of its own. It returns only connection errors.
func (c *Client) Get(ctx context.Context, q Question) (got Answer, err error) {
	id := fmt.Sprintf("e2e-%d", c.Sent.Add(1))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+q.path+"?"+q.query.Encode(), nil)
	if err != nil {
		return got, err
	}
	request.Header.Set("X-Request-Id", id)
	if q.key != "" {
		request.Header.Set("x-api-key", q.key)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return got, fmt.Errorf("%s: read the answer: %w", q, err)
	}
	h := response.Header
	got = Answer{Status: response.StatusCode, block: h.Get("X-Indexed-Block"), seq: h.Get("X-Indexed-Seq"),
		Generation: h.Get("X-Generation"), Patient: number(h.Get("Retry-After")) > 0, id: id}
	if got.body, err = Tree(body); err != nil {
		got.body = fmt.Sprintf("%v: %.300q", err, body)
	}
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/json" {
		got.body = fmt.Sprintf("Content-Type %q: %.300q", h.Get("Content-Type"), body)
	}
	if echo := h.Get("X-Request-Id"); echo != id {
		got.body = fmt.Sprintf("X-Request-Id %q in answer to %q", echo, id)
	}
	got.links = q.readLinks(h.Values("Link"))
	return got, nil
}

// Compare returns every difference between the expected answer and got, one per line.
func (q Question) Compare(got Answer) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, q.String()+": "+fmt.Sprintf(format, args...)) }
	if got.Status != q.want.Status {
		add("expected status %d, got %d", q.want.Status, got.Status)
	}
	for _, line := range Diff(q.want.bodyFor(got.id), got.body) {
		add("%s", line)
	}
	for _, line := range Diff(linkTree(q.want.links), linkTree(got.links)) {
		add("header Link: %s", line)
	}
	if q.want.block != "" && q.want.block != got.block {
		add("header X-Indexed-Block: expected %s, got %q", q.want.block, got.block)
	}
	if q.want.seq != "" && q.want.seq != got.seq {
		add("header X-Indexed-Seq: expected %s, got %q", q.want.seq, got.seq)
	}
	if q.want.Status == http.StatusOK && got.Seq() == 0 {
		add("header X-Indexed-Seq: expected a number from 1, got %q", got.seq)
	}
	return found
}

// bodyFor returns the expected body; an error repeats the request's id.
func (a Answer) bodyFor(id string) any {
	whole, _ := a.body.(Object)
	refusal, ok := whole["error"].(Object)
	if !ok {
		return a.body
	}
	filled := Object{}
	for name, value := range refusal {
		filled[name] = value
	}
	filled["requestId"] = id
	return Object{"ok": whole["ok"], "error": filled}
}

var link = regexp.MustCompile(`^<([^>]*)>; rel="([a-z]+)"$`)

// notALink is the page number of a link that does not lead to a page of the same list.
const notALink = -1

// readLinks parses the header Link: relation to page number. Each link must be the same question with another page.
func (q Question) readLinks(values []string) map[string]int {
	if len(values) == 0 {
		return nil
	}
	found := map[string]int{}
	for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
		m := link.FindStringSubmatch(strings.TrimSpace(one))
		if m == nil {
			found[one] = notALink
			continue
		}
		found[m[2]] = q.pageOf(m[1])
	}
	return found
}

func (q Question) pageOf(target string) int {
	u, err := url.Parse(target)
	if err != nil || u.Path != q.path {
		return notALink
	}
	there := u.Query()
	page, err := strconv.Atoi(there.Get("page"))
	if err != nil || canonical(there) != canonical(q.query) {
		return notALink
	}
	return page
}

// canonical encodes the parameters without the page: empty ones are omitted, and the page size has a default.
func canonical(values url.Values) string {
	same := url.Values{"pageSize": {strconv.Itoa(defaultPageSize)}}
	for name := range values {
		if value := values.Get(name); value != "" && name != "page" {
			same.Set(name, value)
		}
	}
	return same.Encode()
}

func linkTree(links map[string]int) any {
	if links == nil {
		return nil
	}
	o := Object{}
	for relation, page := range links {
		o[relation] = integer(page)
	}
	return o
}
