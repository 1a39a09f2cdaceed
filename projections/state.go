package projections

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

var zero = new(big.Int)

// totals is the state of a user that the users table shows.
type totals struct {
	deposited, withdrawn *big.Int // nil: 0
	first                uint32   // block time of the first live deposit or request
}

// user is what the fold knows of a user. Its numbers are replaced, never
// changed in place, because rows point to them.
type user struct {
	deposited, withdrawn *big.Int
	since                uint64 // seq of the live row in users, 0 for none
	vaults               []vaultUser
	used                 uint64
}

// vaultUser is a user's life in one vault.
type vaultUser struct {
	vault common.Address
	live  uint32 // live deposits and requests
	first uint32 // block time of the first of them; meaningless when live is 0
}

func newUser() *user { return &user{deposited: zero, withdrawn: zero} }

// in finds the user's entry of a vault, and makes it where it is missing.
func (u *user) in(vault common.Address) *vaultUser {
	for i := range u.vaults {
		if u.vaults[i].vault == vault {
			return &u.vaults[i]
		}
	}
	u.vaults = append(u.vaults, vaultUser{vault: vault})
	return &u.vaults[len(u.vaults)-1]
}

// totals gives the user's state over all vaults; live is false when the user
// has no live deposit or request. A vault added later may bring an earlier first.
func (u *user) totals() (t totals, live bool) {
	t.deposited, t.withdrawn = u.deposited, u.withdrawn
	for _, v := range u.vaults {
		if v.live == 0 {
			continue
		}
		if !live || v.first < t.first {
			t.first = v.first
		}
		live = true
	}
	return t, live
}

func (t totals) equal(o totals) bool {
	return t.first == o.first && t.deposited.Cmp(o.deposited) == 0 && t.withdrawn.Cmp(o.withdrawn) == 0
}

// requestKey names a withdrawal request.
type requestKey struct {
	vault common.Address
	index uint64
}

// partnerKey names a user of a partner.
type partnerKey struct {
	partner uint32
	user    common.Address
}

type partnerUser struct {
	deposits uint32 // live ones
	used     uint64
}

// knownRequest is a request and the names of the states that it was in before,
// oldest first. Taking a log back restores the state before it with its name,
// so that the rows of both logs cancel at their block, and every past block
// stays exact.
type knownRequest struct {
	request
	past []uint64
	used uint64
}

// made pushes the state that the log of seq makes.
func (k *knownRequest) made(seq uint64) {
	if k.since != 0 {
		k.past = append(k.past, k.since)
	}
	k.since = seq
}

// unmade goes back to the state before.
func (k *knownRequest) unmade() {
	k.since = 0
	if n := len(k.past); n > 0 {
		k.since, k.past = k.past[n-1], k.past[:n-1]
	}
}

// state is the part of the fold's state that is in memory. complete says that
// what is not here does not exist.
type state struct {
	complete bool
	batch    uint64
	users    map[common.Address]*user
	requests map[requestKey]*knownRequest
	partners map[partnerKey]*partnerUser
}

// newState is the state of an empty generation; one that is not empty is not complete.
func newState(complete bool) *state {
	return &state{
		complete: complete,
		users:    map[common.Address]*user{},
		requests: map[requestKey]*knownRequest{},
		partners: map[partnerKey]*partnerUser{},
	}
}

func (s *state) user(a common.Address) *user {
	u := s.users[a]
	if u == nil {
		u = newUser()
		s.users[a] = u
	}
	u.used = s.batch
	return u
}

func (s *state) request(k requestKey) *knownRequest {
	r := s.requests[k]
	if r == nil {
		r = &knownRequest{request: newRequest()}
		s.requests[k] = r
	}
	r.used = s.batch
	return r
}

func (s *state) partner(k partnerKey) *partnerUser {
	p := s.partners[k]
	if p == nil {
		p = new(partnerUser)
		s.partners[k] = p
	}
	p.used = s.batch
	return p
}

func (s *state) size() int { return len(s.users) + len(s.requests) + len(s.partners) }

// trim forgets what the last batch did not touch when there is more than bound.
func (s *state) trim(bound int) {
	if s.size() <= bound {
		return
	}
	s.complete = false
	for k, u := range s.users {
		if u.used != s.batch {
			delete(s.users, k)
		}
	}
	for k, r := range s.requests {
		if r.used != s.batch {
			delete(s.requests, k)
		}
	}
	for k, p := range s.partners {
		if p.used != s.batch {
			delete(s.partners, k)
		}
	}
}
