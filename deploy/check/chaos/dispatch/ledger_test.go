package dispatch

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/partners"
)

// Which POSTs count as in flight, for a partner that changes hands at second 10 and loses its lease from second 20 to 21.
func TestInFlight(t *testing.T) {
	for what, c := range map[string]struct {
		recorded float64 // 0: never
		posts    []post
		want     int
	}{
		"recorded before":    {9, []post{{at: second(8)}}, 0},
		"being recorded":     {9.99, []post{{at: second(8)}}, 1},
		"recorded after":     {11, []post{{at: second(8)}}, 1},
		"never recorded":     {0, []post{{at: second(8)}}, 1},
		"sent again":         {12, []post{{at: second(8)}, {at: second(11)}}, 1},
		"refused":            {12, []post{{at: second(8), refused: true}, {at: second(11)}}, 0},
		"arrived after":      {12, []post{{at: second(10.5)}}, 0},
		"begun after a loss": {20.9, []post{{at: second(20.5)}}, 1},
		"more than can be begun": {0,
			[]post{{at: second(20.1)}, {at: second(20.2)}, {at: second(20.3)}, {at: second(20.4)}, {at: second(20.5)}},
			concurrency},
		"more than a kill can leave": {0,
			[]post{{at: second(9.1)}, {at: second(9.2)}, {at: second(9.3)}, {at: second(9.4)}, {at: second(9.5)}}, concurrency},
		"begun long after it":     {23, []post{{at: second(22)}}, 0},
		"repeated without reason": {16, []post{{at: second(15)}, {at: second(15)}}, 0},
	} {
		id := uuid.New()
		l := &ledger{
			recorded:    map[uuid.UUID]time.Time{},
			handovers:   map[uint32][]window{7: {{second(10), second(10)}}, 8: {{second(15), second(15)}}},
			leaseLosses: []leaseLoss{{window: window{second(20), second(21)}}},
		}
		if c.recorded > 0 {
			l.recorded[id] = second(c.recorded)
		}
		histories := map[uuid.UUID]history{id: {referral: partners.Referral{Partner: 7}, posts: c.posts}}
		if got := l.bound(histories)[7]; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// The old owner, unaware of the loss, and the new one both send, and PostgreSQL dies before the new owner has recorded
// anything, so everything that both sent is repeated. This happened in a run on a busy machine.
func TestOldAndNewOwner(t *testing.T) {
	l := &ledger{
		recorded:    map[uuid.UUID]time.Time{},
		handovers:   map[uint32][]window{},
		leaseLosses: []leaseLoss{{window: window{second(29.604), second(30.607)}}},
	}
	for _, n := range []float64{29.605, 29.639, 33.027, 37.075} {
		l.handovers[7] = append(l.handovers[7], window{second(n), second(n)})
	}
	histories := map[uuid.UUID]history{}
	for _, e := range []struct {
		posts    []post
		recorded float64
	}{
		{[]post{{at: second(29.684)}, {at: second(29.725)}, {at: second(33.111)}}, 33.147},
		{[]post{{at: second(29.663)}, {at: second(29.718)}, {at: second(33.094)}}, 33.490},
		{[]post{{at: second(29.663), refused: true}, {at: second(29.718)}, {at: second(33.086)}}, 33.258},
		{[]post{{at: second(29.663)}, {at: second(29.718)}, {at: second(33.100)}}, 33.147},
	} {
		id := uuid.New()
		histories[id], l.recorded[id] = history{referral: partners.Referral{Partner: 7}, posts: e.posts}, second(e.recorded)
	}
	if came, bound := extra(histories)[7], l.bound(histories)[7]; came != 7 || bound != 7 {
		t.Errorf("%d came too often, and %d were under way; want 7 of both", came, bound)
	}
	// A third POST without a cause is one too many.
	for id, s := range histories {
		s.posts = append(s.posts, post{at: second(34)})
		histories[id] = s
	}
	if came, bound := extra(histories)[7], l.bound(histories)[7]; came != 11 || bound != 7 {
		t.Errorf("%d came too often, and %d were under way; want 11 and 7", came, bound)
	}
}

// A POST that is in flight during two handovers or lease losses is assigned to the one that has room. This happened in a run
// in which two lease losses were a third of a second apart.
func TestMaxMatching(t *testing.T) {
	both, first, second := []int{0, 1}, []int{0}, []int{1}
	for name, c := range map[string]struct {
		posts [][]int
		want  int
	}{
		"none":                {nil, 0},
		"of nothing":          {[][]int{nil, {}}, 0},
		"more than the first": {[][]int{both, both, both, both, both, both}, 6},
		"more than both":      {[][]int{both, both, both, both, both, both, both, both, both}, 8},
		"those of one last":   {[][]int{both, both, both, both, first, first, first, first}, 8},
		"too many of one":     {[][]int{first, first, first, first, first, both, second}, 6},
	} {
		if n := maxMatching(c.posts); n != c.want {
			t.Errorf("%s: %d, want %d", name, n, c.want)
		}
	}
}

// How long an old owner may trust a lease that was taken away at second 20, if PostgreSQL dies and comes back.
func TestLeaseLossDuringOutage(t *testing.T) {
	for what, c := range map[string]struct{ died, back, until float64 }{
		"dead before the renewal":    {20.5, 21.1, 22.1},
		"back before the renewal":    {20.2, 20.6, 21.6},
		"dead longer than the lease": {20.5, 30, 23},
		"dead after the renewal":     {21.1, 21.5, 21},
	} {
		if got := newLeaseLoss(second(20), second(20)).extended(second(c.died), second(c.back)); !got.to.Equal(second(c.until)) {
			t.Errorf("%s: until %s, want %s", what, got.to, second(c.until))
		}
	}
	once := newLeaseLoss(second(20), second(20)).extended(second(20.5), second(21.1))
	if again := once.extended(second(21.5), second(22.5)); !again.to.Equal(second(23)) {
		t.Errorf("dead twice: until %s, want %s", again.to, second(23))
	}
}
