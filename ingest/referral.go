package ingest

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// attribution says which partner a log names, and for what. Two of them can be compared.
type attribution struct {
	kind    event.Referral_Kind
	partner uint32
}

// attributed is a log's attribution with what the log does.
type attributed struct {
	attribution
	effect *event.Effect
}

// referralOf returns the attribution of a log; nil for a log that names no partner or cannot be decoded.
func referralOf(log *event.Log) *attributed {
	effect, err := mapping.Reference().Referral(log)
	if err != nil || effect == nil {
		return nil
	}
	kind := event.Referral_KIND_DEPOSIT
	if effect.GetKind() == event.Effect_KIND_REQUESTED {
		kind = event.Referral_KIND_WITHDRAWAL
	}
	return &attributed{attribution{kind, effect.GetPartnerId()}, effect}
}

// referral is a record whose log names a partner.
type referral struct {
	*event.Record
	*attributed
}

// due gives the live referrals that told makes due: those of blocks after
// before, and those of records after seq, which are new and so in no block that
// was told.
func (w *window) due(before, told, seq uint64) []referral {
	var due []referral
	for _, e := range w.entries {
		log := e.GetLog()
		if n := log.GetBlockNumber(); log == nil || n > told || n <= before && e.GetSeq() <= seq {
			continue
		}
		if a := referralOf(log); a != nil {
			due = append(due, referral{e.Record, a})
		}
	}
	return due
}

// encodeReferral makes the Kafka record for one of the chain's referral topics. The
// key is the partner id in decimal: a partner's referrals stay in order.
func encodeReferral(logID []byte, r referral) (*kgo.Record, error) {
	value, err := proto.Marshal(&event.Referral{
		ChainId: r.GetChainId(), Kind: r.kind, PartnerId: r.partner, Seq: r.GetSeq(), LogId: logID, Log: r.GetLog(), Effect: r.effect,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the referral of record %d: %w", r.GetSeq(), err)
	}
	topic := chainlog.ReferralDeposits(r.GetChainId())
	if r.kind == event.Referral_KIND_WITHDRAWAL {
		topic = chainlog.ReferralWithdrawals(r.GetChainId())
	}
	return &kgo.Record{Topic: topic, Key: strconv.AppendUint(nil, uint64(r.partner), 10), Value: value}, nil
}
