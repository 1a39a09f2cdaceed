package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// perPrint is how many records a fingerprint is made of; verify_records_whole.sql
// says the same.
const perPrint = 1000

// prints are the fingerprints of the whole log, for the comparison with the table
// records. They are made while the log is read, of the records that were taken
// back too, so that nothing needs to be kept of them.
type prints []fingerprint

// add takes the next record, and its bytes as the log has them.
func (p *prints) add(r *event.Record, value []byte) {
	if (r.GetSeq()-1)%perPrint == 0 {
		*p = append(*p, fingerprint{})
	}
	hash := sha256.Sum256([]byte(recordLine(r, value)))
	last := &(*p)[len(*p)-1]
	last.rows++
	last.hash += binary.LittleEndian.Uint64(hash[:])
}

func (p prints) comparison() comparison {
	want := make([]string, len(p))
	for i, print := range p {
		want[i] = fmt.Sprintf("%d %d %d", i*perPrint+1, print.rows, print.hash)
	}
	return comparison{"records: all they say", "verify_records_whole", want}
}

// recordLine is what the table is to say of a record.
func recordLine(r *event.Record, value []byte) string {
	name, quarantined := fold.Named(r)
	block, at, hash, index, payload := uint64(0), uint64(0), []byte(nil), uint32(0), []byte(nil)
	switch {
	case r.GetLog() != nil:
		l := r.GetLog()
		block, at, hash, index = l.GetBlockNumber(), l.GetBlockTime(), l.GetBlockHash(), l.GetLogIndex()
		if quarantined {
			payload = value
		}
	case r.GetBlock() != nil:
		block, at, hash = r.GetBlock().GetNumber(), r.GetBlock().GetTime(), r.GetBlock().GetHash()
	default:
		payload = value
	}
	return fmt.Sprintf("%d %d %d %s %s %d %d %d %x %d %d %s", r.GetSeq(), chainlog.Sign(r), r.GetRetracts(), chainlog.TypeOf(r), name,
		bit(r.GetBoundary()), bit(quarantined), block, common.BytesToHash(hash), min(at, math.MaxUint32), index, payload)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
