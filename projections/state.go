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
	ties                 uint32 // the newest one, 0 for none
	used                 uint64
}

// tie is a user's life in one vault, or how many live deposits there are of a
// user for a partner. There are few of a user, and a million users.
type tie struct {
	to    uint32 // number of the vault in the state, or partner
	live  uint32 // live deposits and, in a vault, requests
	first uint32 // block time of the first of them in a vault; meaningless when live is 0
	older uint32 // the next one of the user, 0 for none
	kind  uint8
}

const (
	vaultTie uint8 = iota
	partnerTie
)

// tie finds a tie of a user, and makes it where it is missing.
func (s *state) tie(u *user, kind uint8, to uint32) *tie {
	for n := u.ties; n != 0; {
		t := s.ties.at(n)
		if t.to == to && t.kind == kind {
			return t
		}
		n = t.older
	}
	n, t := s.ties.add()
	*t = tie{kind: kind, to: to, older: u.ties}
	u.ties = n
	return t
}

// totals gives the user's state over all vaults; live is false when the user
// has no live deposit or request. A vault added later may bring an earlier first.
func (s *state) totals(u *user) (all totals, live bool) {
	all.deposited, all.withdrawn = u.deposited, u.withdrawn
	for n := u.ties; n != 0; {
		t := s.ties.at(n)
		n = t.older
		if t.kind != vaultTie || t.live == 0 {
			continue
		}
		if !live || t.first < all.first {
			all.first = t.first
		}
		live = true
	}
	return all, live
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

	users    map[common.Address]uint32 // numbers in people
	people   arena[user]
	ties     arena[tie]
	requests map[requestKey]uint32 // numbers in asked
	asked    arena[request]

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
		users:    map[common.Address]uint32{},
		requests: map[requestKey]uint32{},
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

// knows tells whether the state has a user, who is used then.
func (s *state) knows(a common.Address) bool {
	n := s.users[a]
	if n != 0 {
		s.people.at(n).used = s.batch
	}
	return n != 0
}

func (s *state) user(a common.Address) *user {
	n := s.users[a]
	if n == 0 {
		n, _ = s.people.add()
		s.users[a] = n
	}
	u := s.people.at(n)
	u.used = s.batch
	return u
}

func (s *state) request(k requestKey) *request {
	n := s.requests[k]
	if n == 0 {
		n, _ = s.asked.add()
		s.requests[k] = n
		if top, ok := s.tops[k.vault]; !ok || k.index > top {
			s.tops[k.vault] = k.index
		}
	}
	r := s.asked.at(n)
	r.used = s.batch
	return r
}

// fresh tells whether there never was a request of that name.
func (s *state) fresh(k requestKey) bool {
	top, ok := s.tops[k.vault]
	return s.allRequests || !ok || k.index > top
}

// requestShare is which part of the bound is for requests: one that has come to
// its end is not heard of again but by a retraction.
const requestShare = 8

// trim forgets what the last two batches did not touch, the newer of which may
// be on its way into the tables, when there is more than bound.
func (s *state) trim(bound int) {
	old := func(used uint64) bool { return used+1 < s.batch }
	if len(s.users) > bound {
		s.allUsers = false
		for k, n := range s.users {
			if u := s.people.at(n); old(u.used) {
				s.forget(u)
				s.people.remove(n)
				delete(s.users, k)
			}
		}
	}
	if len(s.requests) <= bound/requestShare {
		return
	}
	s.allRequests = false
	s.trimRequests(func(r *request) bool { return old(r.used) && r.over() })
	if len(s.requests) > bound/requestShare {
		s.trimRequests(func(r *request) bool { return old(r.used) })
	}
}

// forget takes a user's ties away.
func (s *state) forget(u *user) {
	for n := u.ties; n != 0; {
		older := s.ties.at(n).older
		s.ties.remove(n)
		n = older
	}
}

func (s *state) trimRequests(gone func(*request) bool) {
	for k, n := range s.requests {
		if gone(s.asked.at(n)) {
			s.asked.remove(n)
			delete(s.requests, k)
		}
	}
}
