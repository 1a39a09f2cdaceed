package main

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/referrals"
)

// What counts as under way, with a partner that changes hands at second 10 and is
// stolen from second 20 to 21.
func TestUnderWay(t *testing.T) {
	second := func(n float64) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(n * float64(time.Second)))
	}
	for what, c := range map[string]struct {
		recorded float64 // 0: never
		posts    []post
		want     int
	}{
		"recorded before":            {9, []post{{at: second(8)}}, 0},
		"being recorded":             {9.99, []post{{at: second(8)}}, 1},
		"recorded after":             {11, []post{{at: second(8)}}, 1},
		"never recorded":             {0, []post{{at: second(8)}}, 1},
		"sent again":                 {12, []post{{at: second(8)}, {at: second(11)}}, 1},
		"refused":                    {12, []post{{at: second(8), refused: true}, {at: second(11)}}, 0},
		"arrived after":              {12, []post{{at: second(10.5)}}, 0},
		"begun while stolen":         {20.9, []post{{at: second(20.5)}}, 1},
		"more than can be begun":     {0, []post{{at: second(20.1)}, {at: second(20.2)}, {at: second(20.3)}, {at: second(20.4)}, {at: second(20.5)}}, concurrency},
		"more than a kill can leave": {0, []post{{at: second(9.1)}, {at: second(9.2)}, {at: second(9.3)}, {at: second(9.4)}, {at: second(9.5)}}, concurrency},
		"begun long after it":        {23, []post{{at: second(22)}}, 0},
		"repeated without reason":    {16, []post{{at: second(15)}, {at: second(15)}}, 0},
	} {
		id := uuid.New()
		l := &ledger{
			recorded:  map[uuid.UUID]time.Time{},
			handovers: map[uint32][]window{7: {{second(10), second(10)}}, 8: {{second(15), second(15)}}},
			thefts:    []theft{{window: window{second(20), second(21)}}},
		}
		if c.recorded > 0 {
			l.recorded[id] = second(c.recorded)
		}
		stories := map[uuid.UUID]story{id: {referral: referrals.Referral{Partner: 7}, posts: c.posts}}
		if got := l.bound(stories)[7]; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// How long an old owner may believe in a lease that was stolen at second 20, when
// PostgreSQL dies and is back.
func TestTheftOutlivesPostgres(t *testing.T) {
	second := func(n float64) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(n * float64(time.Second)))
	}
	for what, c := range map[string]struct{ died, back, until float64 }{
		"dead before the renewal":    {20.5, 21.1, 22.1},
		"back before the renewal":    {20.2, 20.6, 21.6},
		"dead longer than the lease": {20.5, 30, 23},
		"dead after the renewal":     {21.1, 21.5, 21},
	} {
		if got := stolen(second(20), second(20)).outlived(second(c.died), second(c.back)); !got.to.Equal(second(c.until)) {
			t.Errorf("%s: until %s, want %s", what, got.to, second(c.until))
		}
	}
	once := stolen(second(20), second(20)).outlived(second(20.5), second(21.1))
	if again := once.outlived(second(21.5), second(22.5)); !again.to.Equal(second(23)) {
		t.Errorf("dead twice: until %s, want %s", again.to, second(23))
	}
}
