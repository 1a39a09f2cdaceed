package operate

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
)

// Of the blocks that are not in the chain of parent hashes, only the first are listed, but all are counted.
func TestFindingsAreBounded(t *testing.T) {
	const blocks = maxFindings + 20
	p := &Receipts{report: &ReceiptsReport{Chosen: blocks, Proven: blocks}}
	for number := range uint64(blocks) {
		p.compare(&rpc.Node{}, &loggedBlock{number: number, hash: common.Hash{1}}, common.Hash{2})
	}
	if p.report.Wrong != blocks || len(p.report.Findings) != maxFindings ||
		!strings.Contains(p.report.String(), "and 20 more") {
		t.Errorf("%d blocks are wrong and %d are listed:\n%s", p.report.Wrong, len(p.report.Findings), p.report)
	}
}
