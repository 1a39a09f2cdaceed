package files

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	ID    string `json:"id"`
	Token struct {
		Name string `json:"name" file:"foreign"`
	} `json:"token"`
	At      string  `json:"at" file:"time"`
	Ended   *string `json:"ended" file:"time"`
	Block   string  `json:"block" file:"number"`
	Amount  string  `json:"amount"`
	User    *string `json:"user,omitempty"`
	Partner *uint32 `json:"partner"`
	change
	More []string `json:"more" file:"-"`
}

type change struct {
	Change int64 `json:"change"`
	Open   bool  `json:"open"`
}

// newRow returns a row with a name.
func newRow(id, name, block, amount string) row {
	r := row{ID: id, At: "2023-11-14T22:13:20.001Z", Block: block, Amount: amount}
	r.Token.Name = name
	return r
}

const uint256 = "115792089237316195423570985008687907853269984665640564039457584007913129639935"

func rows() []row {
	empty, seven := "", uint32(7)
	first, second := newRow("b", "=1+1", "18446744073709551615", uint256),
		newRow("a", "A \"quoted\", long\r\nname", "0", "0")
	first.Partner, first.Change = &seven, math.MinInt64
	second.Ended, second.User, second.Open = &second.At, &empty, true
	return []row{first, second}
}

func written(t *testing.T, f Format, some ...[]row) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter[row](f, &b)
	for _, part := range some {
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCSV compares the bytes; null and an empty text differ.
func TestCSV(t *testing.T) {
	const header = "id,token.name,at,ended,block,amount,user,partner,change,open\r\n"
	want := header +
		"b,'=1+1,2023-11-14T22:13:20.001Z,,18446744073709551615," + uint256 + ",,7,-9223372036854775808,false\r\n" +
		"a,\"A \"\"quoted\"\", long\r\nname\",2023-11-14T22:13:20.001Z,2023-11-14T22:13:20.001Z,0,0,\"\",,0,true\r\n"
	if got := string(written(t, CSV, rows())); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := string(written(t, CSV)); got != header {
		t.Errorf("without rows: %q", got)
	}
	read, err := csv.NewReader(strings.NewReader(want)).ReadAll() // the reader normalises line breaks
	if err != nil || len(read) != 3 || read[2][1] != "A \"quoted\", long\nname" {
		t.Errorf("encoding/csv reads %q, %v", read, err)
	}
}

// TestGuardedInEverySpreadsheet: wherever a program splits lines, no cell of a hostile name is a formula.
func TestGuardedInEverySpreadsheet(t *testing.T) {
	const name = " =1+1;=2\t@3\n＝4|\u200e-5;\"=6\";\u202e+7"
	out := string(written(t, CSV, []row{newRow("a", name, "0", "1")}))
	_, out, _ = strings.Cut(out, "\r\n")
	for _, separators := range []string{",", ";", "\t", "|", "\n", ",;\t|\r\n"} {
		for _, cell := range strings.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
			cell = strings.TrimLeft(cell, "\" \u00a0\u200e\u202e\t\r\n")
			if cell != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(cell)[0]) {
				t.Errorf("split at %q, the cell %q is in %q", separators, cell, out)
			}
		}
	}
	if strings.ContainsAny(out, "\u200e\u202e") {
		t.Errorf("the direction changes in %q", out)
	}
}

// TestParquetHoldsLittle: however many rows a file has, the writer holds a few thousand of them, in a few MiB. Hashes
// do not compress.
func TestParquetHoldsLittle(t *testing.T) {
	type hashes struct {
		A string `json:"a"`
		B string `json:"b"`
		C string `json:"c"`
		D string `json:"d"`
	}
	rng := rand.New(rand.NewPCG(1, 1))
	hash := func() string {
		return fmt.Sprintf("0x%016x%016x%016x%016x", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
	}
	rows := make([]hashes, 4000)
	fill := func() {
		for i := range rows {
			rows[i] = hashes{hash(), hash(), hash(), hash()}
		}
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC() // a pool holds what it had at the previous collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	fill()
	before, most := held(), int64(0)
	w := NewWriter[hashes](Parquet, io.Discard)
	for range 16 {
		fill()
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		most = max(most, held()-before)
	}
	runtime.KeepAlive(rows)
	if err := w.Close(); err != nil || most > 8<<20 {
		t.Errorf("the writer holds %d KiB, %v", most>>10, err)
	}
}

// TestParquet: the columns have the order of the list and their types, and every value is read back unchanged, over
// several row groups.
func TestParquet(t *testing.T) {
	const many = groupRows + 10
	var some [][]row
	for n := 0; n < many; n += 2 {
		some = append(some, rows())
	}
	b := written(t, Parquet, some...)
	file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if groups := len(file.RowGroups()); file.NumRows() != many || groups != 2 {
		t.Errorf("%d rows in %d groups", file.NumRows(), groups)
	}
	var names, types []string
	for _, field := range file.Schema().Fields() {
		names = append(names, field.Name())
		typed := field.Type().String()
		if field.Optional() {
			typed += " or null"
		}
		types = append(types, typed)
	}
	if got, want := strings.Join(names, " "), "id token.name at ended block amount user partner change open"; got != want {
		t.Errorf("columns are %s, want %s", got, want)
	}
	wantTypes := []string{"STRING", "STRING", "TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS)",
		"TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS) or null", "INT(64,false)", "STRING", "STRING or null",
		"INT(64,true) or null", "INT(64,true)", "BOOLEAN"}
	if !reflect.DeepEqual(types, wantTypes) {
		t.Errorf("types are %q", types)
	}
	reader := parquet.NewReader(file)
	defer reader.Close()
	got := make([]parquet.Row, 2)
	if n, err := reader.ReadRows(got); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	const at = int64(1_700_000_000_001)
	text := func(i int, s string) { t.Helper(); check(t, got, i, s) }
	text(1, "=1+1") // no program runs text in a Parquet file
	text(5, uint256)
	if v := got[0][2].Int64(); v != at {
		t.Errorf("at is %d", v)
	}
	if v := got[0][4].Uint64(); v != math.MaxUint64 {
		t.Errorf("block is %d", v)
	}
	if v := got[0][8].Int64(); v != math.MinInt64 {
		t.Errorf("change is %d", v)
	}
	for _, null := range []bool{got[0][3].IsNull(), got[0][6].IsNull(), !got[0][7].IsNull(), got[1][7].IsNull(),
		!got[1][6].IsNull(), !got[1][3].IsNull()} {
		if !null {
			t.Errorf("the nulls are %v", got)
		}
	}
	if got[1][3].Int64() != at || !got[1][9].Boolean() || got[0][7].Int64() != 7 {
		t.Errorf("the second row is %v", got[1])
	}
}

func check(t *testing.T, got []parquet.Row, column int, want string) {
	t.Helper()
	if v := string(got[0][column].ByteArray()); v != want {
		t.Errorf("column %d is %q, want %q", column, v, want)
	}
}

// TestNotAColumn: a field that has no text is found when the first file is written.
func TestNotAColumn(t *testing.T) {
	type list struct {
		Names []string `json:"names"`
	}
	type misspelled struct {
		At string `json:"at" file:"moment"`
	}
	for want, begin := range map[string]func(){
		"the field Names of files.list": func() { NewWriter[list](CSV, io.Discard) },
		"the field At of files.misspel": func() { NewWriter[misspelled](CSV, io.Discard) },
	} {
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			begin()
		}()
		if text, _ := panicked.(string); !strings.HasPrefix(text, want) {
			t.Errorf("%v, want %s", panicked, want)
		}
	}
}

// TestNotWhole: a Parquet file that was not closed is invalid.
func TestNotWhole(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter[row](Parquet, &b)
	for n := 0; n <= 4*groupRows; n += 2 { // such rows compress so well that one group stays in a buffer
		if err := w.Write(rows()); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() == 0 {
		t.Fatal("nothing is written before Close")
	}
	if _, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil {
		t.Error("a file without a footer is read")
	}
}

// TestErrors: errors of out are returned, and so is an error for a text that does not fit its column.
func TestErrors(t *testing.T) {
	gone := errors.New("the reader is gone")
	for f := range Kinds {
		w := NewWriter[row](f, failing{gone})
		err := w.Write(rows())
		if err == nil {
			err = w.Close()
		}
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, change := range []func(*row){
		func(r *row) { r.At = "yesterday" },
		func(r *row) { r.Block = uint256 },
		func(r *row) { r.Block = "-1" },
	} {
		bad := rows()
		change(&bad[1])
		if err := NewWriter[row](Parquet, io.Discard).Write(bad); err == nil || !strings.HasPrefix(err.Error(), "write \"") {
			t.Errorf("%+v is written: %v", bad[1], err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
