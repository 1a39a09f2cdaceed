package mapping

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// Referral returns the effect of a log of the reference contracts that names a partner.
func (v *Vault) Referral(l *event.Log) (*event.Effect, error) {
	return (&Sources{Vault: v,
		Description: &Description{Sources: []Source{{Address: common.BytesToAddress(l.GetAddress())}}}}).Referral(l)
}

// Referral returns the effect of a log that names a partner; nil if it names none, or is neither a deposit nor a
// request. It keeps a log with a number that is too large to be counted, and marks it. The error describes how the
// layout of the log differs from the event that it announces. A vault whose mapping has companions needs Referrals.
func (s *Sources) Referral(l *event.Log) (*event.Effect, error) {
	log, names := s.names(l)
	if !names {
		return nil, nil // most logs
	}
	log.Topics = make([]common.Hash, len(l.GetTopics()))
	for i, t := range l.GetTopics() {
		log.Topics[i] = common.BytesToHash(t)
	}
	_, effects, fault := s.One(&log, nil)
	switch {
	case fault != nil && fault.Large == nil:
		return nil, fault
	case fault != nil:
		return s.record(&fault.Large.Effect, fault.Large.Numbers, fault.Why, l.GetBlockNumber()), nil
	}
	for i := range effects {
		if out := s.record(&effects[i], nil, "", l.GetBlockNumber()); out != nil {
			return out, nil
		}
	}
	return nil, nil
}

// MayRefer reports whether a log can name a partner: by itself or with other logs of its transaction, with the current
// aliases or with any others.
func (s *Sources) MayRefer(l *event.Log) bool {
	if s.Companions() {
		return true
	}
	_, names := s.names(l)
	return names
}

// names reports whether a log is of an event that can name a partner by itself. The returned log has only the first
// topic.
func (s *Sources) names(l *event.Log) (out Log, names bool) {
	role, ours := s.Role(common.BytesToAddress(l.GetAddress()))
	if len(l.GetTopics()) == 0 || !ours {
		return out, false
	}
	first := [1]common.Hash{common.BytesToHash(l.GetTopics()[0])}
	out = Log{Role: role, Place: Place(l.GetBlockNumber(), l.GetLogIndex()), Time: l.GetBlockTime(),
		Topics: first[:], Data: l.GetData()}
	k := s.known(&out)
	return out, k != nil && k.names
}

// Referrals is Referral for the vault's logs of one transaction, in the order of the chain: nil for a log that is not a
// referral.
func (s *Sources) Referrals(tx []*event.Log) []*event.Effect {
	out := make([]*event.Effect, len(tx))
	if !s.Companions() {
		for i, l := range tx {
			out[i], _ = s.Referral(l) // a log with a wrong layout names no partner
		}
		return out
	}
	var logs []Log
	var at []int
	for i, l := range tx {
		if log, sound := s.FromRecord(l); sound {
			logs, at = append(logs, log), append(at, i)
		}
	}
	effects, err := s.Map(logs, nil)
	quarantine, _ := errors.AsType[Quarantine](err)
	for _, fault := range quarantine {
		if fault.Large != nil { // a log with a wrong layout names no partner
			n := at[fault.Log]
			out[n] = s.record(&fault.Large.Effect, fault.Large.Numbers, fault.Why, tx[n].GetBlockNumber())
		}
	}
	for i := range effects {
		n := at[effects[i].Log]
		if e := s.record(&effects[i], nil, "", tx[n].GetBlockNumber()); e != nil && out[n] == nil {
			out[n] = e
		}
	}
	return out
}

// record returns an effect of a block in the form of a referral; nil if it is not a referral. Assets of 0 are none if
// other logs have no assets (MayLack): the read models cannot tell the two apart, and statements have their amounts.
func (s *Sources) record(e *Effect, large map[Fields]Amount, why string, block uint64) *event.Effect {
	kind := event.Effect_Kind(e.Kind)
	if kind != event.Effect_KIND_DEPOSIT && kind != event.Effect_KIND_REQUESTED || e.Partner == 0 {
		return nil
	}
	key, ok := large[ID]
	if !ok {
		key.SetUint64(e.ID)
	}
	none := !e.Present(Assets) || e.Assets.IsZero() && s.Description.MayLack(e.Kind, Assets, block)
	return &event.Effect{Kind: kind, Key: key.Bytes(), Owner: e.Owner.Bytes(), Assets: e.Assets.Bytes(),
		Shares: e.Shares.Bytes(), PartnerId: e.Partner, Quarantined: why, NoAssets: none,
		NoShares: !e.Present(Shares)}
}
