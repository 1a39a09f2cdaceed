package ingest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// The oracle reads the topics and the chain without any code of ingest, and checks that the topics match the chain.

func (r *rig) cursor() *event.Cursor {
	r.t.Helper()
	cursor, err := chainlog.ReadCursor(r.ctx, r.config.ID, r.kafka.Options()...)
	r.must(err)
	return cursor
}

// settle waits until every topic shows all transactions that any of them shows.
func (r *rig) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	r.must(chainlog.Settle(ctx, r.config.ID, r.kafka.Options()...))
}

// topic reads every committed record of a topic.
func (r *rig) topic(name string) []*kgo.Record {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	records, err := stack.Records(ctx, r.kafka.Brokers, name)
	r.must(err)
	return records
}

// log reads the whole log and checks what holds without the chain.
func (r *rig) log() (all, live []*event.Record) {
	r.t.Helper()
	log := logoracle.Log{ChainID: r.config.ID, Fault: r.t.Fatalf}
	log.Fold(r.topic(chainlog.LogTopic(r.config.ID)))
	return log.All, log.Sorted()
}

// verify checks that the live log matches the chain up to the cursor's head, and that the referral topics follow from
// it.
func (r *rig) verify() (all []*event.Record) {
	r.t.Helper()
	r.settle()
	all, live := r.log()
	cursor := r.cursor()
	if cursor.GetSeq() != uint64(len(all)) {
		r.t.Fatalf("the cursor is at seq %d, the log at %d", cursor.GetSeq(), len(all))
	}
	blocks := map[uint64]*types.Header{}
	for n := uint64(0); n <= cursor.GetHead().GetNumber(); n++ {
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(n))
		r.must(err)
		blocks[n] = h
	}
	r.verifyBlocks(live, cursor, blocks)
	r.verifyLogs(live, cursor, blocks)
	r.verifyReferrals(cursor, blocks)
	return all
}

// verifyBlocks: every block record is a block of the chain, the newest one is the cursor's head, and each block that is
// not final has one. On a chain that is not longer than the window, each block from the first recorded one has a
// record.
func (r *rig) verifyBlocks(live []*event.Record, cursor *event.Cursor, blocks map[uint64]*types.Header) {
	r.t.Helper()
	seen := map[uint64]bool{}
	var first, newest uint64
	for _, record := range live {
		b := record.GetBlock()
		if b == nil {
			continue
		}
		h := blocks[b.GetNumber()]
		if h == nil || common.Hash(b.GetHash()) != h.Hash() || common.Hash(b.GetParentHash()) != h.ParentHash ||
			b.GetTime() != h.Time {
			r.t.Fatalf("record %d is block %v, the chain has %v", record.GetSeq(), b, h)
		}
		if len(seen) == 0 {
			first = b.GetNumber()
		}
		seen[b.GetNumber()] = true
		newest = max(newest, b.GetNumber())
	}
	if newest != cursor.GetHead().GetNumber() {
		r.t.Fatalf("the newest live block is %d, the cursor's head %d", newest, cursor.GetHead().GetNumber())
	}
	if newest-first >= r.config.Window {
		first = max(first, cursor.GetFinalBlock()+1)
	}
	for n := first; n <= newest; n++ {
		if !seen[n] {
			r.t.Fatalf("block %d has no live record, the first one is of block %d", n, first)
		}
	}
}

// verifyLogs: the live logs of each vault are its logs in the chain, read block by block by hash, in the same order.
func (r *rig) verifyLogs(live []*event.Record, cursor *event.Cursor, blocks map[uint64]*types.Header) {
	r.t.Helper()
	for _, v := range cursor.GetVaults() {
		var want []*event.Log
		for n := v.GetStartBlock(); n <= v.GetCoveredTo(); n++ {
			want = append(want, r.chainLogs(blocks[n], common.Address(v.GetAddress()))...)
		}
		var got []*event.Log
		for _, record := range live {
			if l := record.GetLog(); l != nil && bytes.Equal(l.GetAddress(), v.GetAddress()) {
				got = append(got, l)
			}
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !proto.Equal(got[i], want[i]) {
				r.t.Fatalf("log %d of vault 0x%x (the log has %d live ones, the chain %d):\nlog   %v\nchain %v",
					i, v.GetAddress(), len(got), len(want), at(got, i), at(want, i))
			}
		}
	}
}

func at[T any](list []T, i int) any {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

func (r *rig) chainLogs(h *types.Header, vaults ...common.Address) []*event.Log {
	r.t.Helper()
	logs, err := devchain.Logs(r.ctx, r.chain, h, vaults...)
	r.must(err)
	return logs
}

// verifyReferrals: every attributed log in the published blocks is in its topic exactly once, under its partner's key.
// Referrals of blocks that left the chain after they were published stay in the topic; they are not checked here.
func (r *rig) verifyReferrals(cursor *event.Cursor, blocks map[uint64]*types.Header) {
	r.t.Helper()
	want := map[string]int{}
	for _, v := range cursor.GetVaults() {
		for n := v.GetStartBlock(); n <= min(v.GetCoveredTo(), cursor.GetReferralBlock()); n++ {
			for _, l := range r.chainLogs(blocks[n], common.Address(v.GetAddress())) {
				if topic, partner := logoracle.Attribution(r.config.ID, l); topic != "" {
					want[fmt.Sprintf("%s %d %x %d", topic, partner, l.GetBlockHash(), l.GetLogIndex())]++
				}
			}
		}
	}
	got := map[string]int{}
	for _, referral := range r.published() {
		l := referral.GetLog()
		if n := l.GetBlockNumber(); blocks[n] != nil && blocks[n].Hash() == common.Hash(l.GetBlockHash()) {
			got[fmt.Sprintf("%s %d %x %d", referral.topic, referral.GetPartnerId(), l.GetBlockHash(), l.GetLogIndex())]++
		}
	}
	if !maps.Equal(got, want) {
		r.t.Fatalf("referrals up to block %d:\npublished %v\nwant %v", cursor.GetReferralBlock(), got, want)
	}
}

type publishedReferral struct {
	*event.Referral
	topic string
}

// published reads both referral topics of the chain.
func (r *rig) published() (all []publishedReferral) {
	r.t.Helper()
	for _, topic := range []string{chainlog.ReferralDeposits(r.config.ID), chainlog.ReferralWithdrawals(r.config.ID)} {
		for _, k := range r.topic(topic) {
			referral := new(event.Referral)
			r.must(proto.Unmarshal(k.Value, referral))
			if referral.GetChainId() != r.config.ID {
				r.t.Fatalf("topic %s has a referral of chain %d", topic, referral.GetChainId())
			}
			if want := strconv.Itoa(int(referral.GetPartnerId())); string(k.Key) != want {
				r.t.Fatalf("the key of a referral of partner %s is %q", want, k.Key)
			}
			all = append(all, publishedReferral{referral, topic})
		}
	}
	return all
}

// eventually polls a condition until it holds.
func (r *rig) eventually(what string, condition func() bool) {
	r.t.Helper()
	wait.For(r.t, "no "+what, condition)
}
