package writer

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/telemetry"
)

type referral struct {
	*event.Record
	effect *event.Effect
	parent string // the trace context of the record, and later that of the referral
}

// due returns the live referrals that become due when blocks up to upTo are published: those of blocks after
// before, and those of records after seq, which are new and so in no published block.
func (w *Window) due(mapped *mapping.Vaults, before, upTo, seq uint64) []referral {
	var records []chainlog.Entry
	for _, e := range w.entries {
		log := e.GetLog()
		if n := log.GetBlockNumber(); log == nil || n > upTo || n <= before && e.GetSeq() <= seq {
			continue
		}
		records = append(records, e)
	}
	return referralsOf(mapped, records)
}

// referralsOf returns the referrals among records of logs (Attributions).
func referralsOf(mapped *mapping.Vaults, records []chainlog.Entry) (found []referral) {
	logs := make([]*event.Log, len(records))
	for i, e := range records {
		logs[i] = e.GetLog()
	}
	for i, a := range Attributions(mapped, logs) {
		if a != nil {
			found = append(found, referral{records[i].Record, a, records[i].Parent})
		}
	}
	return found
}

// encodeReferral returns the Kafka record for one of the chain's referral topics. The key is the partner id in decimal:
// a partner's referrals stay in order.
func encodeReferral(logID []byte, r referral) (*kgo.Record, error) {
	value, err := proto.Marshal(&event.Referral{
		ChainId: r.GetChainId(), Kind: KindOf(r.effect), PartnerId: r.effect.GetPartnerId(), Seq: r.GetSeq(), LogId: logID,
		Log: r.GetLog(), Effect: r.effect,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the referral of record %d: %w", r.GetSeq(), err)
	}
	topic := chainlog.ReferralDeposits(r.GetChainId())
	if KindOf(r.effect) == event.Referral_KIND_WITHDRAWAL {
		topic = chainlog.ReferralWithdrawals(r.GetChainId())
	}
	record := &kgo.Record{Topic: topic, Key: strconv.AppendUint(nil, uint64(r.effect.GetPartnerId()), 10), Value: value}
	chainlog.Carry(record, r.parent)
	return record, nil
}

// publish starts a span for each referral, in the trace of its block. The spans of a failed transaction are never
// exported.
func publish(ctx context.Context, due []referral) (published func()) {
	if !telemetry.Enabled() {
		return func() {}
	}
	spans := make([]telemetry.Span, len(due))
	for i := range due {
		of, span := telemetry.Continue(ctx, due[i].parent, telemetry.Producer, "publish referral")
		telemetry.Number(span, telemetry.Partner, due[i].effect.GetPartnerId())
		telemetry.Number(span, telemetry.BlockNumber, due[i].GetLog().GetBlockNumber())
		telemetry.Number(span, telemetry.Seq, due[i].GetSeq())
		due[i].parent, spans[i] = telemetry.Parent(of), span
	}
	return func() {
		for _, span := range spans {
			telemetry.End(span, nil)
		}
	}
}
