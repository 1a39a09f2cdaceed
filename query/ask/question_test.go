package ask_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// odd is an address with bytes that are special in SQL.
var odd = func() common.Address {
	a := readtest.VaultA
	a[0], a[1], a[2], a[3], a[19] = 0, '\'', '\\', '\n', 0
	return a
}()

type everyArgument struct {
	Address common.Address `ask:"a"`
	Number  uint64         `ask:"b"`
	Small   uint32         `ask:"c"`
	Signed  int64          `ask:"d"`
	Word    ask.Word       `ask:"f"`
	Truth   bool           `ask:"h"`
	Tiny    uint8          `ask:"s"`
	Decimal ask.Decimal    `ask:"i"`
	Hash    common.Hash    `ask:"j"`

	Addresses []common.Address `ask:"l"`
	Numbers   []uint64         `ask:"m"`
	Members   []ask.Member     `ask:"o"`
	Names     []ask.Name       `ask:"p"`
	NotNamed  uint64           `ask:"r,optional"`
}

// TestArguments: arguments reach the engine unchanged, including those of the pin.
func TestArguments(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	type row struct {
		A     string   `ch:"a"`
		B     uint64   `ch:"b"`
		C     uint32   `ch:"c"`
		D     int64    `ch:"d"`
		F     string   `ch:"f"`
		H     bool     `ch:"h"`
		I     string   `ch:"i"`
		J     string   `ch:"j"`
		L     []string `ch:"l"`
		M     []uint64 `ch:"m"`
		O     string   `ch:"o"`
		P     []string `ch:"p"`
		S     uint8    `ch:"s"`
		Never uint64   `ch:"n"`
	}
	question := ask.New[everyArgument,
		row](`SELECT {a:FixedString(20)} AS a, {b:UInt64} AS b, {c:UInt32} AS c, {d:Int64} AS d, {f:String} AS f, {h:Bool} AS h,
		toString({i:Int256}) AS i, {j:FixedString(32)} AS j, [{l}] AS l, [{m}] AS m, toString(arraySum(m -> m.2, [{o}])) AS o, [{p}] AS p,
		{s:UInt8} AS s, {never:UInt64} AS n WHERE {seq:UInt64} > 0 AND {block:UInt64} = 11 AND {now:UInt64} > 0`)
	user := readmodel.PartnerOwner(513)
	args := everyArgument{Address: odd, Number: readmodel.Never, Small: 7, Signed: -1, Word: "queued", Truth: true,
		Tiny: 255, Decimal: ask.LowestKey, Hash: common.Hash{0, '\''}, Addresses: []common.Address{odd, user},
		Numbers: []uint64{1, readmodel.Never}, Members: []ask.Member{{Vault: odd, User: common.MaxAddress}, {User: user}},
		Names: []ask.Name{"DepositAccepted", "_$1"}}
	got, ok, err := question.One(t.Context(), pinned(t, s, nil), args)
	highest := new(uint256.Int).SetBytes(common.MaxAddress[:])
	want := row{string(odd[:]), readmodel.Never, 7, -1, "queued", true, string(ask.LowestKey), string(args.Hash[:]),
		[]string{string(odd[:]), string(user[:])}, args.Numbers, highest.AddUint64(highest, 513).Dec(),
		[]string{"DepositAccepted", "_$1"}, 255, readmodel.Never}
	if err != nil || !ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// TestConditionalLines: a line with a condition is sent only if its argument is set, and the parameters of a line
// that is not sent are not required.
func TestConditionalLines(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	type arguments struct {
		Word    ask.Word         `ask:"word"`
		Number  uint64           `ask:"number"`
		Truth   bool             `ask:"truth"`
		Numbers []uint64         `ask:"numbers"`
		Users   []common.Address `ask:"users"`
	}
	question := ask.New[arguments, one](`-- {nothing}
SELECT toUInt64(0)
  + 1 * length({word:String}) -- if word
  + 10 * {number:UInt64} -- if number
  + 100 -- unless word, number
  + 1000 * arraySum([{numbers}]) -- if numbers
  + 100000 -- if truth, users
  AS n`)
	past := uint64(8)
	for _, c := range []struct {
		args arguments
		at   *uint64
		want uint64
	}{
		{arguments{}, nil, 100},
		{arguments{}, &past, 100},
		{arguments{Word: "abc"}, &past, 3},
		{arguments{Number: 2, Numbers: []uint64{3, 4}}, &past, 7020},
		{arguments{Truth: true}, &past, 100100},
		{arguments{Users: []common.Address{odd}}, &past, 100100},
	} {
		got, _, err := question.One(t.Context(), pinned(t, s, c.at), c.args)
		if err != nil || got.N != c.want {
			t.Errorf("%+v: %d, %v, want %d", c.args, got.N, err, c.want)
		}
	}
}

// TestEmptyLists: an empty list matches no row, and is valid SQL.
func TestEmptyLists(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	type lists struct {
		Addresses []common.Address `ask:"l"`
		Numbers   []uint64         `ask:"m"`
		Members   []ask.Member     `ask:"o"`
		Names     []ask.Name       `ask:"p"`
	}
	for _, condition := range []string{"vault IN ({l})", "seq IN ({m})", "(vault, toInt256(seq)) IN ({o})",
		"event IN ({p})"} {
		all := "1 OR vault IN ({l}) OR seq IN ({m}) OR (vault, toInt256(seq)) IN ({o}) OR event IN ({p})"
		for where, want := range map[string]bool{condition + " AND (" + all + ")": false, all: true} {
			rows, err := ask.New[lists, one]("SELECT seq AS n FROM events WHERE "+where).Rows(t.Context(), pinned(t, s, nil),
				lists{})
			if err != nil || len(rows) > 0 != want {
				t.Errorf("%s: %d rows, %v", where, len(rows), err)
			}
		}
	}
}

// of is a struct with one argument.
type of[V any] struct {
	V V `ask:"v"`
}

// asking runs a question with one argument.
func asking[V any](t *testing.T, p *ask.Pin, sql string, v V) error {
	t.Helper()
	_, err := ask.New[of[V], one](sql).Rows(t.Context(), p, of[V]{v})
	return err
}

// TestWrongArguments: an invalid value is not sent.
func TestWrongArguments(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	p := pinned(t, w.BeforeReorganisation(), nil)
	const value, list = "SELECT toUInt64(1) AS n WHERE {v:String} != ''", "SELECT toUInt64(1) AS n WHERE 'x' IN ({v})"
	for name, err := range map[string]error{
		"an invalid word":           asking(t, p, value, ask.Word("x' OR 1")),
		"an empty word":             asking(t, p, value, ask.Word("")),
		"a word in capitals":        asking(t, p, value, ask.Word("Queued")),
		"an invalid number":         asking(t, p, value, ask.Decimal("1; DROP")),
		"an empty number":           asking(t, p, value, ask.Decimal("")),
		"a number that is too long": asking(t, p, value, ask.Decimal(strings.Repeat("1", 79))),
		"an invalid name":           asking(t, p, list, []ask.Name{"a', 'b"}),
		"an empty name":             asking(t, p, list, []ask.Name{""}),
	} {
		var question *state.Error
		if !errors.As(err, &question) || !question.Ours {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMismatchedQuestions: mismatches between a question and its arguments are found when the program starts.
func TestMismatchedQuestions(t *testing.T) {
	type unknownList struct {
		V common.Address `ask:"v" reads:"totals,nonsense"`
	}
	type ofEvents struct {
		V common.Address `ask:"v" reads:"vault_events"`
	}
	type ofTotals struct {
		V common.Address `ask:"v" reads:"totals.deposit"`
	}
	for name, c := range map[string]struct {
		make func()
		want string
	}{
		"a text": {func() { ask.New[of[string], one]("SELECT {v:String}") },
			"a string cannot be the argument v"},
		"texts as a list": {func() { ask.New[of[[]string], one]("SELECT 1 IN ({v})") },
			"cannot be the argument"},
		"one address as a list": {func() { ask.New[of[common.Address], one]("SELECT 1 IN ({v})") },
			"cannot be the argument"},
		"addresses as a value": {func() { ask.New[of[[]common.Address], one]("SELECT {v:String}") },
			"cannot be the argument"},
		"an argument that is not named":   {func() { ask.New[of[uint64], one]("SELECT 1") }, "has no parameter v"},
		"a parameter without an argument": {func() { ask.New[none, one]("SELECT {v:UInt64}") }, "that no argument gives"},
		"a list without an argument":      {func() { ask.New[none, one]("SELECT 1 IN ({v})") }, "that no argument gives"},
		"an unknown list":                 {func() { ask.New[unknownList, one]("SELECT {v:String}") }, `no list "nonsense"`},
		"a list of events without a kind": {func() { ask.New[ofEvents, one]("SELECT {v:String}") }, "with the kind"},
		"a kind of another list":          {func() { ask.New[ofTotals, one]("SELECT {v:String}") }, "no other list"},
		"a condition without an argument": {func() { ask.New[none, one]("SELECT 1\n+ 1 -- if v") },
			"a condition v that no argument gives"},
		"a page that always begins after a place": {func() {
			ask.NewPage[none, aUser]("queue", "SELECT 1 WHERE block > {after_block:UInt64}", ask.OldestFirst)
		}, "-- if after"},
		"a page of an unknown list": {func() { ask.NewPage[none, aUser]("nonsense", "SELECT 1", ask.OldestFirst) },
			`no list "nonsense"`},
		"a page whose rows have no place": {func() { ask.NewPage[none, one]("queue", "SELECT 1", ask.OldestFirst) },
			"embed Entry"},
	} {
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			c.make()
		}()
		if !strings.Contains(fmt.Sprint(panicked), c.want) {
			t.Errorf("%s: %v", name, panicked)
		}
	}
}

// TestTogether: all parts run, the first error is returned, and a panic surfaces in the caller.
func TestTogether(t *testing.T) {
	var ran [3]bool
	first := errors.New("first")
	parts := []func() error{func() error { ran[0] = true; return nil }, func() error { ran[1] = true; return first },
		func() error { ran[2] = true; return nil }}
	if err := ask.Together(parts...); !errors.Is(err, first) || slices.Contains(ran[:], false) {
		t.Errorf("%v, %v", err, ran)
	}
	defer func() {
		p, ok := recover().(*ask.Panic)
		if !ok || p.Value != "boom" || !strings.Contains(string(p.Stack), "TestTogether") {
			t.Errorf("%+v", p)
		}
	}()
	_ = ask.Together(func() error { return ask.Together(func() error { panic("boom") }) })
	t.Error("the panic is lost")
}
