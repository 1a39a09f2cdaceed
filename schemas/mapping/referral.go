package mapping

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// Referral returns what a log does that names a partner; nil if it names none, or is neither a deposit nor a request.
// It keeps a log with a number that is too large to be counted, and says so. The error says why the log is not laid out
// like the event that it announces.
func (v *Vault) Referral(l *event.Log) (*event.Effect, error) {
	if len(l.GetTopics()) == 0 {
		return nil, nil
	}
	first := [1]common.Hash{common.BytesToHash(l.GetTopics()[0])}
	log := Log{Place: Place(l.GetBlockNumber(), l.GetLogIndex()), Time: l.GetBlockTime(),
		Topics: first[:], Data: l.GetData()}
	if k := v.known(&log); k == nil || !k.names {
		return nil, nil // most logs
	}
	log.Topics = make([]common.Hash, len(l.GetTopics()))
	for i, t := range l.GetTopics() {
		log.Topics[i] = common.BytesToHash(t)
	}
	_, effects, fault := v.One(&log, nil)
	switch {
	case fault != nil && fault.Large == nil:
		return nil, fault
	case fault != nil:
		return record(&fault.Large.Effect, fault.Large.Numbers, fault.Why), nil
	}
	for i := range effects {
		if out := record(&effects[i], nil, ""); out != nil {
			return out, nil
		}
	}
	return nil, nil
}

// record is an effect as a referral carries it; nil for one that is no referral.
func record(e *Effect, large map[Field]Amount, why string) *event.Effect {
	kind := event.Effect_Kind(e.Kind)
	if kind != event.Effect_KIND_DEPOSIT && kind != event.Effect_KIND_REQUESTED || e.Partner == 0 {
		return nil
	}
	key, ok := large[ID]
	if !ok {
		key.SetUint64(e.ID)
	}
	return &event.Effect{Kind: kind, Key: key.Bytes(), Owner: e.Owner.Bytes(), Assets: e.Assets.Bytes(),
		Shares: e.Shares.Bytes(), PartnerId: e.Partner, Quarantined: why}
}
