package ingest

import (
	"bytes"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/schemas/event"
)

// checkUnit checks one unit, which is folded. No operator decides anything in a plan.
func (f *fold) checkUnit(unit []*event.Record) {
	var lost, added []*event.Record
	for _, r := range unit {
		if r.GetRetracts() != 0 {
			lost = append(lost, r)
		} else {
			added = append(added, r)
		}
	}
	if len(added) == 0 || added[0].GetDecision() != nil {
		f.differs("the unit that record %d ends is an operator's", unit[len(unit)-1].GetSeq())
		return
	}
	f.checkRetractions(lost, added)
	f.checkFacts(added)
	f.noteAttributed(unit)
}

// checkRetractions checks that only what the branch replaces is retracted, and that the chain really differs.
func (f *fold) checkRetractions(lost, added []*event.Record) {
	lowest, _, _ := logoracle.BlockOf(added[0])
	for _, r := range added {
		if b := r.GetBlock(); b != nil {
			lowest = min(lowest, b.GetNumber())
		}
	}
	for _, r := range lost {
		n, hash, ofBlock := logoracle.BlockOf(r)
		if !ofBlock || n < lowest {
			f.differs("record %d retracts something of block %d, but the branch begins with block %d", r.GetSeq(), n, lowest)
		}
		for _, a := range added {
			if an, ah, _ := logoracle.BlockOf(a); an == lowest && n == lowest && bytes.Equal(ah, hash) {
				f.differs("record %d retracts a block that record %d appends again", r.GetSeq(), a.GetSeq())
			}
		}
	}
}

// checkFacts checks that everything that was ever appended was true of a block that the chain had, and, if no vault
// joins late, that every block came with all logs of the vaults.
func (f *fold) checkFacts(added []*event.Record) {
	logs := map[common.Hash][]*event.Log{}
	for _, r := range added {
		_, hash, ofBlock := logoracle.BlockOf(r)
		if !ofBlock {
			continue
		}
		block := f.recorder.seen[common.Hash(hash)]
		if block == nil {
			f.differs("record %d is of block 0x%x, which the chain never had", r.GetSeq(), hash)
			return
		}
		if l := r.GetLog(); l != nil {
			found := false
			for _, true := range block.logs {
				found = found || proto.Equal(true, l)
			}
			if !found {
				f.differs("record %d is %s, which the chain never had", r.GetSeq(), logoracle.Name(l))
			}
			logs[block.hash] = append(logs[block.hash], l)
			continue
		}
		if r.GetSample() != nil {
			continue // only live ones can be compared with the chain: it has no state of orphaned blocks
		}
		if !sameBlock(r.GetBlock(), block) {
			f.differs("record %d is another block than the chain's block %s", r.GetSeq(), block.hash)
		}
		if want := len(block.of(f.vaults()...)); !f.plan.Late && len(logs[block.hash]) != want {
			f.differs("record %d is block %d (%s) with %d logs, the chain has %d in it", r.GetSeq(), block.number, block.hash,
				len(logs[block.hash]), want)
		}
	}
}

func (f *fold) vaults() (addresses []common.Address) {
	for _, v := range f.config.Vaults {
		addresses = append(addresses, common.HexToAddress(v.Address))
	}
	return addresses
}
