// Package oracle compares every response about random histories with an independent oracle: that of
// deploy/testkit/oracle, which reads the chain, for the state at a block, and this one, which reads the log, for
// the history: events, reorganisations and the stream.
package oracle

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/contracts"
)

var same = readtest.Same

// Oracle computes responses about one state.
type Oracle struct {
	*oracle.State
	chain      *oracle.Chain
	seq, block uint64
	brief      bool              // asks for lists in one page each, and fewer filters
	logs       []readtest.Entry  // all facts up to the block, also retracted ones, in the order of the log
	gone       map[uint64]uint64 // which of them were retracted, and by which record
	reorgs     []reorganisation  // the reorganisations of blocks up to the block, oldest first
}

// At returns the oracle of a log's state at a seq and up to a block; one of the blocks up to it must be indexed.
func At(t *testing.T, l *readtest.Log, seq, block uint64) *Oracle {
	t.Helper()
	o := &Oracle{chain: chainOf(l, seq), seq: seq, brief: true, gone: map[uint64]uint64{}}
	o.block = min(block, uint64(len(o.chain.Times)-1))
	for _, e := range l.Entries[:seq] {
		switch {
		case e.Retracts != 0:
			o.gone[e.Retracts] = e.Seq
		case e.Block <= o.block && e.Kind != readtest.Block && e.Kind != readtest.Vault:
			o.logs = append(o.logs, e)
		}
	}
	o.reorgs = reorganisationsOf(l.Entries[:seq], o.block)
	var err error
	if o.State, err = o.chain.At(o.block); err != nil {
		t.Fatal(err)
	}
	return o
}

// newest returns the oracle of a log's newest state.
func newest(t *testing.T, l *readtest.Log) *Oracle {
	t.Helper()
	return At(t, l, l.Seq(), 1<<62)
}

// chainOf returns the chain that a log describes up to a seq.
func chainOf(l *readtest.Log, seq uint64) *oracle.Chain {
	c := &oracle.Chain{ID: readtest.ChainID, Router: readtest.Router, Times: []uint64{0}}
	known := map[uint64]uint64{}
	for _, e := range l.Live(seq, 1<<62) {
		switch {
		case e.Kind == readtest.Vault:
			c.Vaults = append(c.Vaults, e.Meta)
		case e.Kind == readtest.Block:
			known[e.Block] = uint64(e.At())
			for uint64(len(c.Times)) <= e.Block {
				c.Times = append(c.Times, 0)
			}
		case !e.Quarantined:
			c.Logs = append(c.Logs, logOf(e))
		}
	}
	for block := range c.Times[1:] {
		c.Times[block+1] = cmp.Or(known[uint64(block+1)], c.Times[block])
	}
	slices.SortFunc(c.Logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	return c
}

// logOf returns the log of a fact.
func logOf(e readtest.Entry) types.Log {
	n := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	assets, shares := big.NewInt(e.Assets), big.NewInt(e.Shares)
	if e.Largest {
		assets.Sub(assets.Lsh(big.NewInt(1), 191), big.NewInt(1))
		shares = assets
	}
	var event contracts.Event
	switch e.Kind {
	case readtest.Deposit:
		event = contracts.DepositAccepted{DepositID: n(e.ID), Owner: e.User, PartnerID: e.Partner, Sender: e.Other,
			Assets: assets, Shares: shares}
	case readtest.Request:
		event = contracts.WithdrawalRequested{RequestIndex: n(e.ID), Owner: e.User, PartnerID: e.Partner, Receiver: e.Other,
			Shares: shares, AssetsEstimate: assets, ExpiresAt: e.Expires}
	case readtest.Funding:
		event = contracts.WithdrawalFunded{RequestIndex: n(e.ID), Owner: e.User, SettlementID: n(0), Shares: shares,
			Assets: assets}
	case readtest.Claim:
		event = contracts.WithdrawalClaimed{RequestIndex: n(e.ID), Owner: e.User, Receiver: e.Other, Shares: shares,
			Assets: assets}
	case readtest.Cancel:
		event = contracts.WithdrawalCancelled{RequestIndex: n(e.ID), Owner: e.User, Shares: shares}
	case readtest.Expiry:
		event = contracts.WithdrawalExpired{RequestIndex: n(e.ID), Owner: e.User, Shares: shares}
	case readtest.Nav:
		event = contracts.NavUpdated{NavID: n(1), NavPerShare: big.NewInt(e.Price), TotalAssets: assets,
			TotalSupply: big.NewInt(e.Supply)}
	case readtest.Sweep:
		event = contracts.DepositsSwept{SweepID: n(1), FromDepositID: n(e.ID), ToDepositID: n(e.To), Assets: assets}
	case readtest.Settlement:
		event = contracts.WithdrawalsSettled{SettlementID: n(e.ID), RequestCount: n(1), Shares: shares, Assets: assets,
			NavPerShare: big.NewInt(e.Price)}
	default:
		panic("the reference vault has no log for " + e.Kind)
	}
	topics, data, err := contracts.Encode(event)
	if err != nil {
		panic(err)
	}
	return types.Log{Address: e.Fact.Vault, Topics: topics, Data: data, BlockNumber: e.Block,
		BlockTimestamp: uint64(e.At()), TxHash: e.Tx, Index: uint(e.Index)}
}

// seven is the partner that sends the tests' requests.
var seven = oracle.Partner{ID: 7, Name: "Seven", APIKey: "seven"}

// answer returns the data of a response, which is the whole list if it is one.
func (o *Oracle) answer(t *testing.T, path string) any {
	t.Helper()
	data, err := o.Answer(path, seven)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// list is answer for a list.
func (o *Oracle) list(t *testing.T, path string) []any {
	t.Helper()
	return o.answer(t, path).([]any)
}

// vaults returns the paths of the vaults.
func (o *Oracle) vaults(t *testing.T) (out []string) {
	t.Helper()
	for _, v := range o.list(t, "/api/v1/vaults") {
		out = append(out, "/api/v1/vaults/"+v.(object)["address"].(string))
	}
	return out
}

// vaultOf returns the address in the path of a vault.
func vaultOf(path string) common.Address { return common.HexToAddress(path[len("/api/v1/vaults/"):]) }

// name returns the name of a vault.
func (o *Oracle) name(vault common.Address) string {
	for _, v := range o.chain.Vaults {
		if common.BytesToAddress(v.GetAddress()) == vault {
			return v.GetName()
		}
	}
	return ""
}

// pinned returns the parameter that requests a past block.
func (o *Oracle) pinned() string { return fmt.Sprintf("asOfBlock=%d", o.block) }

// moment returns the state for the questions of deploy/testkit/oracle.
func (o *Oracle) moment(pinned string) oracle.Moment {
	at := oracle.Moment{Block: o.block, Seq: o.seq, Brief: o.brief}
	if pinned != "" {
		at.AsOf = url.Values{"asOfBlock": {strconv.FormatUint(o.block, 10)}}
	}
	return at
}

type object = map[string]any

func iso(ts uint32) string {
	return time.Unix(int64(ts), 0).UTC().Format("2006-01-02T15:04:05") + ".000Z"
}

func dec[T ~int64 | ~uint64](n T) string { return fmt.Sprint(n) }

// inChain compares by chain order.
func inChain(a, b readtest.Entry) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
}

func inVault(v common.Address) func(readtest.Entry) bool {
	return func(e readtest.Entry) bool { return e.Fact.Vault == v }
}
