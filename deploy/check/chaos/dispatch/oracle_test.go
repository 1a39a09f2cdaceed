package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/registry"
)

func second(n float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(n * float64(time.Second)))
}

// posts returns refused POSTs at these seconds; a negative second is an accepted POST.
func posts(at ...float64) []post {
	var all []post
	for _, n := range at {
		if n < 0 {
			all = append(all, post{at: second(-n)})
		} else {
			all = append(all, post{at: second(n), refused: true})
		}
	}
	return all
}

// How schedule judges the POSTs to a partner that changes hands at second 50.
func TestSchedule(t *testing.T) {
	for what, c := range map[string]struct {
		posts []post
		want  string // "": no error
	}{
		"accepted at once":             {posts(-1), ""},
		"refused once":                 {posts(1, -2), ""},
		"all refused":                  {posts(1, 2, 7.1, 22.2), ""},
		"a fourth retry":               {posts(1, 2, 7.1, 22.2, 40), "no more than 1 + 3"},
		"too soon":                     {posts(1, 1.9), "1s are promised"},
		"the second too soon":          {posts(1, 2, 6.9), "5s are promised"},
		"the third too soon":           {posts(1, 2, 7.1, 21), "15s are promised"},
		"twice":                        {posts(-1, -1.001), "although it was accepted"},
		"again after a handover":       {posts(49, 51), ""},
		"accepted again after it":      {posts(-49, -51), ""},
		"one more for the handover":    {posts(49, 50, 51, 56, 71), ""},
		"two more for one handover":    {posts(49, 50, 51, 56, 71, 90), "was refused 6 times"},
		"a handover before everything": {posts(51, 52, 57, 72, 73), "no more than 1 + 3"},
	} {
		l := &ledger{recorded: map[uuid.UUID]time.Time{}, handovers: map[uint32][]window{7: {{second(50), second(50)}}}}
		_, err := l.schedule(map[uuid.UUID]history{uuid.New(): {referral: partners.Referral{Partner: 7}, posts: c.posts}}, 99)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// A receiver that closes a connection that may have been reused gets the request again in the same attempt, on a new
// connection. It must not get it a third time, or with another attempt's signature, or if the connection was certainly
// new.
func TestScheduleOfARequestThatIsSentAgain(t *testing.T) {
	hungUp := func(p post) post { p.hungUp = true; return p }
	own := func(p post) post { p.own = true; return p }
	signed := func(second int64, p post) post { p.second = second; return p }
	all := posts(1, 1.001, 1.002, -2.1)
	for what, c := range map[string]struct {
		posts []post
		want  string
	}{
		"once more":                  {[]post{hungUp(all[0]), own(all[1]), signed(2, all[3])}, ""},
		"once more, accepted":        {[]post{hungUp(all[0]), own(posts(-1.001)[0])}, ""},
		"twice more":                 {[]post{hungUp(all[0]), own(all[1]), own(all[2])}, "1s are promised"},
		"of another attempt":         {[]post{hungUp(all[0]), signed(2, own(all[1]))}, "1s are promised"},
		"after a new connection":     {[]post{own(all[0]), own(all[1])}, "1s are promised"},
		"after an answer":            {[]post{all[0], own(all[1])}, "1s are promised"},
		"on a connection that stays": {[]post{hungUp(all[0]), all[1]}, "1s are promised"},
		"five attempts": {append([]post{hungUp(all[0]), own(all[1])}, posts(2.1, 7.2, 22.3, 40)...),
			"no more than 1 + 3"},
	} {
		_, err := (&ledger{}).schedule(map[uuid.UUID]history{uuid.New(): {referral: partners.Referral{Partner: 7},
			posts: c.posts}}, 99)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// In which states an event may end, and in which it is lost. Partner 8 is down, and 9 has no URL.
func TestLost(t *testing.T) {
	four := posts(1, 2, 7, 22)
	for what, c := range map[string]struct {
		partner uint32
		now     *standing // nil: PostgreSQL does not know it
		history history
		opened  bool
		ok      bool
	}{
		"delivered": {7, &standing{registry.Delivered, 1}, history{accepted: true, posts: posts(-1)},
			false, true},
		"delivered, and none came":         {7, &standing{registry.Delivered, 1}, history{}, false, false},
		"pending":                          {7, &standing{registry.Pending, 1}, history{posts: posts(1)}, false, false},
		"unknown":                          {7, nil, history{}, false, false},
		"parked":                           {8, &standing{registry.Parked, 2}, history{posts: posts(1, 2)}, true, true},
		"parked, and no breaker is open":   {8, &standing{registry.Parked, 2}, history{posts: posts(1, 2)}, false, false},
		"parked, and its receiver is well": {7, &standing{registry.Parked, 2}, history{posts: posts(1, 2)}, true, false},
		"failed": {7, &standing{registry.Failed, 4}, history{stubborn: true, posts: four}, false,
			true},
		"failed at one that is down": {8, &standing{registry.Failed, 4}, history{posts: four}, true, true},
		"failed too early": {7, &standing{registry.Failed, 3}, history{stubborn: true, posts: four[:3]}, false,
			false},
		"failed unsent": {7, &standing{registry.Failed, 4}, history{stubborn: true, posts: four[:3]}, false,
			false},
		"failed, but it was accepted": {7, &standing{registry.Failed, 4},
			history{stubborn: true, accepted: true, posts: four}, false, false},
		"failed, but it was not refused": {7, &standing{registry.Failed, 4}, history{posts: four}, false, false},
		"no endpoint":                    {9, &standing{registry.NoEndpoint, 0}, history{}, false, true},
		"no endpoint, but there is one":  {7, &standing{registry.NoEndpoint, 0}, history{}, false, false},
		"sent without a URL":             {9, &standing{registry.NoEndpoint, 0}, history{posts: posts(1)}, false, false},
	} {
		id := uuid.New()
		l := &ledger{states: map[uuid.UUID]standing{}, opened: map[uint32]bool{c.partner: c.opened}}
		if c.now != nil {
			l.states[id] = *c.now
		}
		c.history.referral.Partner = c.partner
		if lost := l.lost(map[uuid.UUID]history{id: c.history}, 8, 9); (len(lost) == 0) != c.ok {
			t.Errorf("%s: %v", what, lost)
		}
	}
}
