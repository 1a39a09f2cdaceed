package ingest

import (
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// attribution says that a log names a partner.
type attribution struct {
	kind    event.Referral_Kind
	partner uint32
}

// referralOf gives the attribution of a log, nil for a log that names no
// partner or cannot be decoded.
func referralOf(log *event.Log) *attribution {
	if t := log.GetTopics(); len(t) != 4 || common.BytesToHash(t[3]) == (common.Hash{}) {
		return nil // most logs: the partner is the last topic, and 0
	}
	switch kindOf(log) {
	case contracts.KindDepositAccepted, contracts.KindWithdrawalRequested:
	default:
		return nil
	}
	topics := make([]common.Hash, len(log.GetTopics()))
	for i, t := range log.GetTopics() {
		topics[i] = common.BytesToHash(t)
	}
	decoded, err := contracts.Decode(topics, log.GetData())
	if err != nil {
		return nil
	}
	switch e := decoded.(type) {
	case contracts.DepositAccepted:
		if e.PartnerID != 0 {
			return &attribution{event.Referral_KIND_DEPOSIT, e.PartnerID}
		}
	case contracts.WithdrawalRequested:
		if e.PartnerID != 0 {
			return &attribution{event.Referral_KIND_WITHDRAWAL, e.PartnerID}
		}
	}
	return nil
}

// referral is a record whose log names a partner.
type referral struct {
	*event.Record
	*attribution
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
		ChainId: r.GetChainId(), Kind: r.kind, PartnerId: r.partner, Seq: r.GetSeq(), LogId: logID, Log: r.GetLog(),
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
