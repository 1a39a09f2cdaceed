package projections

import (
	"github.com/ethereum/go-ethereum/common"
)

// totals is what the lists of users are ordered by.
type totals struct {
	deposited, withdrawn amount
	first                uint32 // block time of the first live deposit or request
}

// keys are the places of a user in the lists, in the order of their numbers.
func (t *totals) keys() [3]amount { return [3]amount{{uint64(t.first)}, t.deposited, t.withdrawn} }

// user is what the fold knows of a user.
type user struct {
	deposited, withdrawn amount
	ties                 []tie
	used                 uint64
}

// tie is a user's life in one vault, or how many live deposits there are of a
// user for a partner. There are few of a user, and a million users.
type tie struct {
	kind  uint8
	to    uint32 // number of the vault in the state, or partner
	live  uint32 // live deposits and, in a vault, requests
	first uint32 // block time of the first of them in a vault; meaningless when live is 0
}

const (
	vaultTie uint8 = iota
	partnerTie
)

// tie finds a tie, and makes it where it is missing. It is good until the next call.
func (u *user) tie(kind uint8, to uint32) *tie {
	for i := range u.ties {
		if u.ties[i].to == to && u.ties[i].kind == kind {
			return &u.ties[i]
		}
	}
	u.ties = append(u.ties, tie{kind: kind, to: to})
	return &u.ties[len(u.ties)-1]
}

// totals gives the user's state over all vaults; live is false when the user
// has no live deposit or request. A vault added later may bring an earlier first.
func (u *user) totals() (t totals, live bool) {
	t.deposited, t.withdrawn = u.deposited, u.withdrawn
	for i := range u.ties {
		v := &u.ties[i]
		if v.kind != vaultTie || v.live == 0 {
			continue
		}
		if !live || v.first < t.first {
			t.first = v.first
		}
		live = true
	}
	return t, live
}

// requestKey names a withdrawal request.
type requestKey struct {
	vault common.Address
	index uint64
}

// state is the part of the fold's state that is in memory.
type state struct {
	// allUsers says that a user who is not here does not exist, allRequests
	// the same of requests.
	allUsers, allRequests bool
	batch                 uint64
	users                 map[common.Address]*user
	requests              map[requestKey]*request
	// tops is the highest index of a request that there ever was in a vault: a
	// higher one need not be looked for. nil: not known yet.
	tops   map[common.Address]uint64
	vaults map[common.Address]uint32
}

// newState is the state of an empty generation; of one that is not empty it
// holds nothing yet.
func newState(empty bool) *state {
	s := &state{
		allUsers: empty, allRequests: empty,
		users:    map[common.Address]*user{},
		requests: map[requestKey]*request{},
		vaults:   map[common.Address]uint32{},
	}
	if empty {
		s.tops = map[common.Address]uint64{}
	}
	return s
}

// vault is the number of a vault.
func (s *state) vault(a common.Address) uint32 {
	n, ok := s.vaults[a]
	if !ok {
		n = uint32(len(s.vaults))
		s.vaults[a] = n
	}
	return n
}

func (s *state) user(a common.Address) *user {
	u := s.users[a]
	if u == nil {
		u = new(user)
		s.users[a] = u
	}
	u.used = s.batch
	return u
}

func (s *state) request(k requestKey) *request {
	r := s.requests[k]
	if r == nil {
		r = new(request)
		s.requests[k] = r
		if top, ok := s.tops[k.vault]; !ok || k.index > top {
			s.tops[k.vault] = k.index
		}
	}
	r.used = s.batch
	return r
}

// fresh tells whether there never was a request of that name.
func (s *state) fresh(k requestKey) bool {
	top, ok := s.tops[k.vault]
	return s.allRequests || !ok || k.index > top
}

// requestShare is which part of the bound is for requests: they are large, and
// one that has come to its end is not heard of again but by a retraction.
const requestShare = 8

// trim forgets what the last two batches did not touch, the newer of which may
// be on its way into the tables, when there is more than bound.
func (s *state) trim(bound int) {
	old := func(used uint64) bool { return used+1 < s.batch }
	if len(s.users) > bound {
		s.allUsers = false
		for k, u := range s.users {
			if old(u.used) {
				delete(s.users, k)
			}
		}
	}
	if len(s.requests) <= bound/requestShare {
		return
	}
	s.allRequests = false
	for k, r := range s.requests {
		if old(r.used) && r.over() {
			delete(s.requests, k)
		}
	}
	if len(s.requests) <= bound/requestShare {
		return
	}
	for k, r := range s.requests {
		if old(r.used) {
			delete(s.requests, k)
		}
	}
}
