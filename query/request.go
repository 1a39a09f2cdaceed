package query

import (
	"cmp"
	"math/big"
	"slices"
)

// requestLog is what one log said of a withdrawal request.
type requestLog struct {
	requestKey
	Seq      uint64   `ch:"seq"`
	Sign     int8     `ch:"sign"` // -1: the log at seq Retracts was taken back
	Retracts uint64   `ch:"retracts"`
	Kind     string   `ch:"kind"`
	User     string   `ch:"user"`
	Receiver string   `ch:"receiver"`
	Partner  uint32   `ch:"partner"`
	Shares   *big.Int `ch:"shares"`
	Assets   *big.Int `ch:"assets"`
	Estimate *big.Int `ch:"estimate"`
	Expires  uint64   `ch:"expires_ts"`
	Block    uint64   `ch:"block"`
	Time     uint32   `ch:"ts"`
	Tx       string   `ch:"tx"`
	LogIndex uint32   `ch:"log_index"`
}

// requests reads the states of some withdrawal requests, in no order.
func (x *exchange) requests(p *pin, keys []requestKey) ([]requestRow, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var logs []requestLog
	var now uint64
	err := together(
		func() (err error) {
			logs, err = pinned[requestLog](x, p, question("request_logs", keyList(keys)))
			return
		},
		func() (err error) { now, err = x.now(p); return },
	)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(logs, func(a, b requestLog) int { return cmp.Compare(a.Seq, b.Seq) })
	retracted := make(map[uint64]bool)
	for _, l := range logs {
		if l.Sign < 0 {
			retracted[l.Retracts] = true
		}
	}
	states := make(map[requestKey]*requestRow, len(keys))
	for _, l := range logs {
		if l.Sign < 0 || retracted[l.Seq] {
			continue
		}
		if states[l.requestKey] == nil {
			states[l.requestKey] = &requestRow{requestKey: l.requestKey, ClaimedAssets: new(big.Int)}
		}
		states[l.requestKey].apply(&l)
	}
	rows := make([]requestRow, 0, len(states))
	for _, r := range states {
		if r.Requested > 0 {
			r.Status = r.status(now)
			rows = append(rows, *r)
		}
	}
	return rows, nil
}

// apply adds what a live log says, which come in the order of the chain: the
// first of a kind counts, and every claim adds up.
func (r *requestRow) apply(l *requestLog) {
	first := func(times *uint64, at *uint32) bool {
		*times++
		if *times == 1 {
			*at = l.Time
		}
		return *times == 1
	}
	switch l.Kind {
	case "requested":
		if first(&r.Requested, &r.RequestedAt) {
			r.User, r.Receiver, r.Partner, r.Shares, r.Estimate, r.Expires = l.User, l.Receiver, l.Partner, l.Shares, l.Estimate, l.Expires
			r.RequestedBlock, r.Tx, r.LogIndex = l.Block, l.Tx, l.LogIndex
		}
	case "funded":
		if first(&r.Funded, &r.FundedAt) {
			r.FundedAssets = l.Assets
		}
	case "claimed":
		first(&r.Claimed, &r.ClaimedAt)
		r.ClaimedAssets.Add(r.ClaimedAssets, l.Assets)
	case "cancelled":
		first(&r.Cancelled, &r.CancelledAt)
	case "expired":
		first(&r.Expired, &r.ExpiredAt)
	}
}

// status judges the state at a time.
func (r *requestRow) status(now uint64) string {
	switch {
	case r.Claimed > 0:
		return statusClaimed
	case r.Cancelled > 0:
		return statusCancelled
	case r.Funded > 0:
		return statusQueued
	case r.Expired > 0 || r.Expires != 0 && r.Expires <= now:
		return statusExpired
	}
	return statusQueued
}

// position compares where two requests were made.
func (r *requestRow) position(b requestRow) int {
	return cmp.Or(cmp.Compare(r.RequestedBlock, b.RequestedBlock), cmp.Compare(r.LogIndex, b.LogIndex))
}
