package ingest

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/schemas/event"
)

// attributed is the history of a record that names a partner.
type attributed struct {
	log       *event.Log
	topic     string
	partner   uint32
	head      uint64 // highest head of the log while the record was live
	dead      bool
	published int
}

// noteAttributed updates the records with a partner after a unit. A unit may append below the head: the history of a
// vault that joins late, whose logs already have their confirmations when they arrive.
func (f *fold) noteAttributed(unit []*event.Record) {
	for _, r := range unit {
		original := r.GetRetracts()
		if s := f.attributed[original]; s != nil {
			s.dead = true
		}
		if l := r.GetLog(); l != nil && original == 0 {
			if topic, partner := logoracle.Attribution(f.config.ID, l); topic != "" {
				f.attributed[r.GetSeq()] = &attributed{log: l, topic: topic, partner: partner}
			}
		}
	}
	var head uint64
	for _, r := range f.Live {
		head = max(head, r.GetBlock().GetNumber())
	}
	for _, s := range f.attributed {
		if !s.dead {
			s.head = max(s.head, head)
		}
	}
}

// referrals checks one of the referral topics: each due referral is there once, and a retracted one at most once and
// only if it had the confirmations. A partner receives the logs of a vault in order, and if no vault joins late, all
// its logs in order.
func (f *fold) referrals(topic string, records []*kgo.Record) {
	newest := map[string]uint64{}
	for _, k := range records {
		r := new(event.Referral)
		if err := proto.Unmarshal(k.Value, r); err != nil {
			f.differs("offset %d of %s is not a referral: %v", k.Offset, topic, err)
			continue
		}
		if r.GetChainId() != f.config.ID || !bytes.Equal(r.GetLogId(), f.cursor.GetLogId()) {
			continue // from another seed on a shared broker
		}
		s := f.attributed[r.GetSeq()]
		if s == nil || s.topic != topic || s.partner != r.GetPartnerId() || !proto.Equal(s.log, r.GetLog()) {
			f.Doubled++
			f.differs("offset %d of %s repeats record %d, which is not a referral of this kind", k.Offset, topic, r.GetSeq())
			continue
		}
		if key := strconv.FormatUint(uint64(s.partner), 10); string(k.Key) != key {
			f.differs("offset %d of %s has the key %q and not %s", k.Offset, topic, k.Key, key)
		}
		if s.published++; s.published > 1 {
			f.Doubled++
			f.differs("%s has %s twice (record %d)", topic, logoracle.Name(s.log), r.GetSeq())
		}
		order := fmt.Sprint(s.partner)
		if f.plan.Late {
			order += fmt.Sprintf(" %x", s.log.GetAddress())
		}
		if r.GetSeq() < newest[order] {
			f.differs("%s has, for partner %d, record %d after record %d", topic, s.partner, r.GetSeq(), newest[order])
		}
		newest[order] = max(newest[order], r.GetSeq())
		if n := s.log.GetBlockNumber(); s.dead && (f.least == 0 || s.head+1 < n+f.least) {
			f.Doubled++
			f.differs("%s has %s, which was retracted before it had %d confirmations: the head was at most %d", topic,
				logoracle.Name(s.log), f.least, s.head)
		}
	}
	for seq, s := range f.attributed {
		if s.topic == topic && !s.dead && s.published == 0 && s.log.GetBlockNumber() <= f.cursor.GetReferralBlock() {
			f.Lost++
			f.differs("%s lacks %s (record %d) although referrals up to block %d are written", topic, logoracle.Name(s.log), seq,
				f.cursor.GetReferralBlock())
		}
		if s.topic == topic && !s.dead && s.published > 0 && s.log.GetBlockNumber() > f.cursor.GetReferralBlock() {
			f.differs("%s has %s (record %d) although referrals are written only up to block %d", topic,
				logoracle.Name(s.log), seq, f.cursor.GetReferralBlock())
		}
	}
}
