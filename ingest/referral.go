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

// referral is a record whose log names a partner.
type referral struct {
	*event.Record
	*attributed
}

// due gives the live referrals that told makes due: those of blocks after
// before, and those of records after seq, which are new and so in no block that
// was told.
func (w *window) due(mapped *mapping.Vaults, before, told, seq uint64) []referral {
	var records []*event.Record
	var logs []*event.Log
	for _, e := range w.entries {
		log := e.GetLog()
		if n := log.GetBlockNumber(); log == nil || n > told || n <= before && e.GetSeq() <= seq {
			continue
		}
		records, logs = append(records, e.Record), append(logs, log)
	}
	var due []referral
	for i, a := range attributions(mapped, logs) {
		if a != nil {
			due = append(due, referral{records[i], a})
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
