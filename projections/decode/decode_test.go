package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// want is what the protobuf library and the decoder of contracts say of a record.
func want(r *event.Record) (kind, name string, e contracts.Event, quarantined bool) {
	kind = chainlog.TypeOf(r)
	l := r.GetLog()
	if l == nil {
		return kind, "", nil, false
	}
	var topics []common.Hash
	odd := len(l.GetAddress()) != 20 || len(l.GetTxHash()) != 32
	for _, t := range l.GetTopics() {
		topics = append(topics, common.BytesToHash(t))
		odd = odd || len(t) != 32
	}
	name = "Unknown"
	if len(topics) > 0 {
		name = contracts.KindOf(topics[0]).String()
	}
	e, err := contracts.Decode(topics, l.GetData())
	if err != nil || e != nil && (odd || fold.Quarantines(e)) {
		return kind, name, nil, true
	}
	return kind, name, e, false
}

// sameFact compares a fact with what the libraries say.
func sameFact(r *event.Record, f *fact) error {
	kind, name, e, quarantined := want(r)
	if f.kind.String() != kind || f.name() != name || f.quarantined != quarantined || f.retracts != r.GetRetracts() {
		return fmt.Errorf("kind %q, name %q, quarantined %t, retracts %d; want %q, %q, %t, %d", f.kind, f.name(), f.quarantined, f.retracts, kind, name, quarantined, r.GetRetracts())
	}
	if l := r.GetLog(); l != nil {
		if f.log != (logged{common.BytesToAddress(l.GetAddress()), l.GetBlockNumber(), seconds(l.GetBlockTime()), common.BytesToHash(l.GetTxHash()), l.GetLogIndex()}) || f.hash != common.BytesToHash(l.GetBlockHash()) {
			return fmt.Errorf("logged %+v", f.log)
		}
	}
	if b := r.GetBlock(); b != nil && (f.log.block != b.GetNumber() || f.log.ts != seconds(b.GetTime()) || f.hash != common.BytesToHash(b.GetHash())) {
		return fmt.Errorf("block %+v", f.log)
	}
	if got, said := fmt.Sprint(f.event, f.args), fmt.Sprint(argsOf(e)); got != said {
		return fmt.Errorf("arguments %s, want %s", got, said)
	}
	return nil
}

// argsOf puts an event's arguments where the fact has them.
func argsOf(e contracts.Event) (k contracts.Kind, a args) {
	if e == nil {
		return contracts.KindUnknown, a
	}
	switch e := e.(type) {
	case contracts.DepositAccepted:
		a = args{id: e.DepositID.Uint64(), owner: e.Owner, other: e.Sender, partner: e.PartnerID, assets: amountOf(e.Assets), shares: amountOf(e.Shares)}
	case contracts.WithdrawalRequested:
		a = args{id: e.RequestIndex.Uint64(), owner: e.Owner, other: e.Receiver, partner: e.PartnerID, shares: amountOf(e.Shares), assets: amountOf(e.AssetsEstimate), expires: e.ExpiresAt}
	case contracts.WithdrawalFunded:
		a = args{id: e.RequestIndex.Uint64(), owner: e.Owner, shares: amountOf(e.Shares), assets: amountOf(e.Assets)}
	case contracts.WithdrawalClaimed:
		a = args{id: e.RequestIndex.Uint64(), owner: e.Owner, other: e.Receiver, shares: amountOf(e.Shares), assets: amountOf(e.Assets)}
	case contracts.WithdrawalCancelled:
		a = args{id: e.RequestIndex.Uint64(), owner: e.Owner, shares: amountOf(e.Shares)}
	case contracts.WithdrawalExpired:
		a = args{id: e.RequestIndex.Uint64(), owner: e.Owner, shares: amountOf(e.Shares)}
	case contracts.NavUpdated:
		a = args{other: e.Updater, nav: amountOf(e.NavPerShare), assets: amountOf(e.TotalAssets), shares: amountOf(e.TotalSupply)}
	case contracts.DepositsSwept:
		a = args{id: e.FromDepositID.Uint64(), to: e.ToDepositID.Uint64(), other: e.Custodian, assets: amountOf(e.Assets)}
	case contracts.WithdrawalsSettled:
		a = args{other: e.Funder, shares: amountOf(e.Shares), assets: amountOf(e.Assets)}
	}
	return e.Kind(), a
}

// TestDecode: the decoder says what the libraries say, of random records and of
// records whose bytes were changed at random.
func TestDecode(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(12, 1))
	read, refused, quarantined := 0, 0, 0
	for range 20 {
		for _, r := range randomHistory(rng, 40).Records {
			r = proto.Clone(r).(*event.Record)
			if l := r.GetLog(); l != nil {
				spoil(rng, l)
			}
			value, err := proto.Marshal(r)
			must(t, err)
			f, err := decode(chainlog.Raw{Value: value})
			must(t, err)
			if err := sameFact(r, &f); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			read++
			if f.quarantined {
				quarantined++
			}
			value = bytes.Clone(value)
			value[rng.IntN(len(value))] ^= 1 << rng.IntN(8)
			var changed event.Record
			valid := proto.Unmarshal(value, &changed) == nil && changed.GetFact() != nil
			f, err = decode(chainlog.Raw{Value: value})
			switch {
			case err != nil && valid:
				t.Fatalf("%x is refused with %v", value, err)
			case err != nil:
				refused++
			case valid:
				if err := sameFact(&changed, &f); err != nil {
					t.Fatalf("%x: %v", value, err)
				}
			}
		}
	}
	if read < 1000 || refused == 0 || quarantined < 50 {
		t.Errorf("%d records read, %d refused, %d quarantined: the test proves little", read, refused, quarantined)
	}
}

// spoil changes now and then what the fold must notice.
func spoil(rng *rand.Rand, l *event.Log) {
	switch rng.IntN(12) {
	case 0:
		l.Data = l.Data[:rng.IntN(len(l.Data)+1)]
	case 1:
		l.Topics = l.Topics[:rng.IntN(len(l.Topics)+1)]
	case 2:
		l.Topics = append(l.Topics, make([]byte, 32))
	case 3:
		l.Address = l.Address[1:]
	case 4:
		l.TxHash = append(bytes.Clone(l.TxHash), 1)
	case 5:
		i := rng.IntN(len(l.Topics))
		l.Topics[i] = bytes.Clone(l.Topics[i][:rng.IntN(33)])
	case 6:
		l.Data = bytes.Clone(l.Data)
		l.Data[rng.IntN(len(l.Data))] ^= 0xff
	case 7:
		i := rng.IntN(len(l.Topics))
		l.Topics[i] = bytes.Clone(l.Topics[i])
		l.Topics[i][rng.IntN(32)] ^= 0xff
	}
}

// TestNumbers: the numbers that the fold writes for kinds, events and lists are
// those that the tables give the names.
func TestNumbers(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	number := func(column, name string) (n int8) {
		t.Helper()
		table, column, _ := strings.Cut(column, ".")
		ask := fmt.Sprintf("SELECT CAST(CAST('%s', toTypeName(%s)), 'Int8') FROM (SELECT any(r.%s) AS %s FROM %s.%s AS r)", name, column, column, column, database, table)
		must(t, conn.QueryRow(t.Context(), ask).Scan(&n))
		return n
	}
	for _, k := range []kind{aLog, aBlock, aVault, aDecision} {
		if n := number("records.kind", k.String()); n != int8(k) {
			t.Errorf("records.kind %s is %d", k, n)
		}
	}
	for _, k := range append(contracts.Kinds(), contracts.KindUnknown) {
		f := fact{named: k}
		if n := number("records.event", k.String()); n != int8(f.eventNumber()) {
			t.Errorf("records.event %s is %d, and not %d", k, n, f.eventNumber())
		}
	}
	for name, want := range map[string]int8{"first": listFirst, "deposited": listDeposited, "withdrawn": listWithdrawn} {
		if n := number("rankings.list", name); n != want {
			t.Errorf("rankings.list %s is %d, and not %d", name, n, want)
		}
	}
	for name, k := range map[string]contracts.Kind{"requested": contracts.KindWithdrawalRequested, "funded": contracts.KindWithdrawalFunded,
		"claimed": contracts.KindWithdrawalClaimed, "cancelled": contracts.KindWithdrawalCancelled, "expired": contracts.KindWithdrawalExpired} {
		if n := number("requests.kind", name); n != int8(stepNumber(k)) {
			t.Errorf("requests.kind %s is %d, and not %d", name, n, stepNumber(k))
		}
	}
}
