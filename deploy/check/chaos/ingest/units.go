package ingest

import (
	"bytes"
	"regexp"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// unitShape: either vault records, or retractions followed by blocks or ranges, each as its logs and samples and then
// the record of the block that contains them or ends their range.
var unitShape = regexp.MustCompile(`^(v+|-*([ls]*b)+)$`)

// checkUnit checks one unit. All its records except the last are already folded.
func (f *fold) checkUnit(unit []*event.Record) {
	shape, last := "", unit[len(unit)-1].GetSeq()
	var lost, added []*event.Record
	for _, r := range unit {
		kind := chainlog.TypeOf(r)[:1]
		if r.GetRetracts() != 0 {
			kind, lost = "-", append(lost, r)
		} else {
			added = append(added, r)
		}
		shape += kind
	}
	if !unitShape.MatchString(shape) {
		f.differs("the unit that record %d ends has the shape %s", last, shape)
		return
	}
	f.checkRetractions(lost, added)
	f.checkFacts(added)
	f.noteAttributed(unit)
}

// checkRetractions checks that retractions go from newest to oldest, cover exactly what is above the ancestor, and
// occur only if the chain really differs.
func (f *fold) checkRetractions(lost, added []*event.Record) {
	if len(lost) == 0 {
		return
	}
	first := lost[0].GetSeq()
	lowest, _, _ := blockOf(added[0])
	for _, r := range added {
		if b := r.GetBlock(); b != nil {
			lowest = min(lowest, b.GetNumber())
		}
	}
	before := first
	for _, r := range lost {
		if r.GetRetracts() >= before {
			f.differs("record %d retracts record %d after a later one of the same unit: the newest comes first", r.GetSeq(), r.GetRetracts())
		}
		before = r.GetRetracts()
		n, hash, ofBlock := blockOf(r)
		if !ofBlock || n < lowest {
			f.differs("record %d retracts something of block %d, but the branch begins with block %d", r.GetSeq(), n, lowest)
		}
		for _, a := range added {
			if an, ah, _ := blockOf(a); an == lowest && n == lowest && bytes.Equal(ah, hash) {
				f.differs("record %d retracts a block that record %d appends again", r.GetSeq(), a.GetSeq())
			}
		}
	}
	for seq, r := range f.live {
		if n, _, ofBlock := blockOf(r); ofBlock && seq < first && n >= lowest {
			f.differs("the reorganisation from record %d on leaves record %d of block %d live", first, seq, n)
		}
	}
}

// checkFacts checks that everything that was ever appended was true of a block that the chain had, and, if no vault
// joins late, that every block came with all logs of the vaults.
func (f *fold) checkFacts(added []*event.Record) {
	logs := map[common.Hash][]*event.Log{}
	for _, r := range added {
		_, hash, ofBlock := blockOf(r)
		if !ofBlock {
			continue
		}
		block := f.witness.seen[common.Hash(hash)]
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
				f.differs("record %d is %s, which the chain never had", r.GetSeq(), name(l))
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
			f.differs("record %d is block %d (%s) with %d logs, the chain has %d in it", r.GetSeq(), block.number, block.hash, len(logs[block.hash]), want)
		}
	}
}

func (f *fold) vaults() (addresses []common.Address) {
	for _, v := range f.config.Vaults {
		addresses = append(addresses, common.HexToAddress(v.Address))
	}
	return addresses
}
