package oracle

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

// Contradictions returns the seqs of the live logs that are in no total, and describes each live log that
// contradicts the state, in a sentence. It follows only requests that have numbers.
func (f *Fold) Contradictions() (quarantined []uint64, impossible []string) {
	type key struct {
		vault common.Address
		id    uint64
	}
	type request struct{ requested, funded, ended bool }
	requests, swept := map[key]*request{}, map[common.Address]uint64{}
	logs, quarantined := f.logs()
	report := func(l *Log, what string, numbers ...any) {
		impossible = append(impossible, fmt.Sprintf("seq %d, block %d, log %d: vault %s: %s",
			l.Seq, l.Block, l.Index, l.Vault, fmt.Sprintf(what, numbers...)))
	}
	for i := range logs {
		l := &logs[i]
		if l.Kind == mapping.Sweep {
			if l.Present(mapping.ID) && (l.ID != swept[l.Vault]+1 || l.To < l.ID) {
				report(l, "sweeps deposits %d to %d after deposit %d", l.ID, l.To, swept[l.Vault])
			}
			swept[l.Vault] = l.To
		}
		if !l.Present(mapping.ID) {
			continue
		}
		q := requests[key{l.Vault, l.ID}]
		if q == nil {
			q = &request{} // unless the log requests it, its effects do not matter
		}
		switch l.Kind {
		case mapping.Requested:
			if q.requested {
				report(l, "request %d is requested again", l.ID)
			}
			q.requested = true
			requests[key{l.Vault, l.ID}] = q
		case mapping.Funded:
			if !q.requested || q.funded || q.ended {
				report(l, "request %d is funded, and is unknown, funded or over", l.ID)
			}
			q.funded = q.funded || !q.ended
		case mapping.Claimed:
			if !q.requested || q.ended || !q.funded && f.vaults.Of(l.Vault).Description.FundsEach() {
				report(l, "request %d is claimed, and is unknown, not funded or over", l.ID)
			}
			q.ended = true
		case mapping.Cancelled, mapping.Expired:
			if !q.requested || q.funded || q.ended {
				report(l, "request %d %s, and is unknown, funded or over", l.ID,
					map[mapping.Kind]string{mapping.Cancelled: "is cancelled", mapping.Expired: "expires"}[l.Kind])
			}
			q.ended = true
		}
	}
	return quarantined, impossible
}
