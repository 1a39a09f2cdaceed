package readmodel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

// Column is a column of a table, as declared by the tag col of the row's field.
type Column struct {
	Name, Type, Codec string

	field int
	width int // size of a value in bytes; 0 for text and arrays
}

// Table is a table whose rows are T. Its DDL, its inserts and the comparison by verify follow from T.
type Table[T any] struct {
	Name    string
	Columns []Column
	tail    string // engine, order and settings of the table
}

// durable are the settings without which a crash could lose or duplicate an insert. ClickHouse's defaults differ, so
// CheckGeneration requires them.
//
// It does not require the absence of column statistics, which is only faster. Every query uses a key or an index, so a
// planner that weighs conditions has nothing to choose, but would read the statistics of each part, under the lock of
// the table.
const (
	synced  = "fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1"
	durable = singleWindow + ", " + synced + ", auto_statistics_types = ''"
)

// The tables of a generation.
var (
	// EventsTable is the decoded log, in the order of the chain within each kind of record.
	// PARTITION BY seq = 0 puts all rows into one partition (no seq is 0) and makes the engine keep the lowest and
	// highest seq of each part, so that the cursor max(seq) reads one part.
	EventsTable = newTable[EventRow]("events", `,
  INDEX named (user, tx) TYPE bloom_filter GRANULARITY 1,
  INDEX numbered seq TYPE minmax GRANULARITY 1
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (record, block) ORDER BY (record, block, seq, sub)
SETTINGS `+durable+`, index_granularity = 1024`)
	// ListsTable has every order in which the API reads. Compact parts make a small insert cheap; the two indexes find
	// the rows of a past block and of a time in a long list.
	ListsTable = newTable[ListRow]("lists", `,
  INDEX made block TYPE minmax GRANULARITY 1,
  INDEX timed ts TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) PRIMARY KEY (list, owner, scope, kind, key, block)
ORDER BY (list, owner, scope, kind, key, block, log_index, sub, user)
SETTINGS `+durable+`, index_granularity = 256, min_bytes_for_wide_part = 10000000000, min_rows_for_wide_part = 1000000000`)
)

func newTable[T any](name, tail string) *Table[T] {
	t := &Table[T]{Name: name, tail: tail}
	for i := range reflect.TypeFor[T]().NumField() {
		field := reflect.TypeFor[T]().Field(i)
		// A type such as Enum8('log' = 0, 'block' = 1) contains commas.
		column, declared, _ := strings.Cut(field.Tag.Get("col"), ",")
		c := Column{Name: column, Type: declared, field: i, width: int(field.Type.Size())}
		if before, ok := strings.CutSuffix(declared, ",Delta"); ok {
			c.Type, c.Codec = before, "Delta, LZ4"
		}
		if field.Type.Kind() == reflect.String {
			c.width = 0
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

// DDL returns the statement that creates the table under a name, which includes the database.
func (t *Table[T]) DDL(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (\n", name)
	for i, c := range t.Columns {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  %s %s", c.Name, c.Type)
		if c.Codec != "" {
			fmt.Fprintf(&b, " CODEC(%s)", c.Codec)
		}
	}
	b.WriteString(t.tail)
	return b.String()
}

// Names returns the columns except without, for INSERT and SELECT.
func (t *Table[T]) Names(without ...string) string {
	var names []string
	for _, c := range t.except(without) {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func (t *Table[T]) except(without []string) []Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return slices.Contains(without, c.Name) })
}

// Rows collects rows of a table by column, in ClickHouse's native format, so that an insert sends them without
// allocating each value.
type Rows[T any] struct {
	table *Table[T]
	data  [][]byte   // by column; nil for text and arrays
	texts [][]string // by column: of text, and of arrays (TouchedKeys)
	count int
}

// NewRows returns an empty collection.
func (t *Table[T]) NewRows() *Rows[T] {
	n := len(t.Columns)
	return &Rows[T]{table: t, data: make([][]byte, n), texts: make([][]string, n)}
}

// Len returns the number of rows.
func (r *Rows[T]) Len() int { return r.count }

// Reset removes the rows and keeps the memory.
func (r *Rows[T]) Reset() {
	r.count = 0
	for i := range r.table.Columns {
		r.data[i] = r.data[i][:0]
		clear(r.texts[i])
		r.texts[i] = r.texts[i][:0]
	}
}

// Add appends a row.
func (r *Rows[T]) Add(row *T) {
	r.count++
	v := reflect.ValueOf(row).Elem()
	for i := range r.table.Columns {
		r.add(i, v.Field(r.table.Columns[i].field))
	}
}

func (r *Rows[T]) add(i int, field reflect.Value) {
	d := r.data[i]
	switch v := field.Addr().Interface().(type) {
	case *uint64:
		d = binary.LittleEndian.AppendUint64(d, *v)
	case *uint32:
		d = binary.LittleEndian.AppendUint32(d, *v)
	case *int8:
		d = append(d, byte(*v))
	case *bool:
		if *v {
			d = append(d, 1)
		} else {
			d = append(d, 0)
		}
	case *common.Address:
		d = append(d, v[:]...)
	case *common.Hash:
		d = append(d, v[:]...)
	case *Amount:
		for _, word := range v {
			d = binary.LittleEndian.AppendUint64(d, word)
		}
	case *string:
		r.texts[i] = append(r.texts[i], *v)
	case *TouchedKeys:
		r.texts[i] = append(r.texts[i], string(*v))
	default: // uint8, or a number of an Enum8; Uint panics for a field of any other type
		d = append(d, byte(field.Uint()))
	}
	r.data[i] = d
}

// Fill copies the rows into the columns of an INSERT that names all columns of the table.
func (r *Rows[T]) Fill(columns []column.Interface) error {
	if len(columns) != len(r.table.Columns) {
		return fmt.Errorf("%s has %d columns and not %d", r.table.Name, len(columns), len(r.table.Columns))
	}
	for i, c := range columns {
		if err := r.fill(c, i); err != nil {
			return fmt.Errorf("fill %s.%s with %d rows: %w", r.table.Name, c.Name(), r.count, err)
		}
	}
	return nil
}

func (r *Rows[T]) fill(c column.Interface, i int) (err error) {
	width := r.table.Columns[i].width
	switch {
	case strings.HasPrefix(r.table.Columns[i].Type, "Array"):
		for _, keys := range r.texts[i] {
			if err := c.AppendRow(TouchedKeys(keys).split()); err != nil {
				return err
			}
		}
	case r.texts[i] != nil:
		_, err = c.Append(r.texts[i])
	case len(r.data[i]) != width*r.count:
		return fmt.Errorf("it holds %d bytes for %d rows of %d", len(r.data[i]), r.count, width)
	default:
		err = c.Decode(proto.NewReader(bytes.NewReader(r.data[i])), r.count)
	}
	return err
}

// Reader scans rows with some columns of a table, but not touched.
type Reader[T any] struct {
	SQL     string // the columns, for SELECT
	Row     T      // the row that was scanned last
	targets []any
	amounts map[*Amount]*big.Int // of Row; the driver scans big.Int
}

// NewReader returns a reader of columns, which are named as in Names.
func (t *Table[T]) NewReader(columns string) *Reader[T] {
	r := &Reader[T]{amounts: map[*Amount]*big.Int{}}
	row, words := reflect.ValueOf(&r.Row).Elem(), strings.Split(columns, ", ")
	for i, name := range words {
		c := t.Columns[slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })]
		target := row.Field(c.field).Addr()
		if amount, is := target.Interface().(*Amount); is {
			r.amounts[amount] = new(big.Int)
			target = reflect.ValueOf(r.amounts[amount])
		}
		if strings.HasPrefix(c.Type, "Enum8") {
			words[i], target = "toUInt8("+name+")", target.Convert(reflect.TypeFor[*uint8]())
		}
		r.targets = append(r.targets, target.Interface())
	}
	r.SQL = strings.Join(words, ", ")
	return r
}

// Scan scans the current row of a result into Row.
func (r *Reader[T]) Scan(rows driver.Rows) error {
	err := rows.Scan(r.targets...)
	for to, from := range r.amounts {
		to.SetFromBig(from)
	}
	return err
}

var enumValue = regexp.MustCompile(`'(\w+)' = (\d+)`)

// enum returns the numbers of an Enum8 column by name.
func enum[T ~uint8](columns []Column, name string) map[string]T {
	out := map[string]T{}
	for _, c := range columns {
		if c.Name != name {
			continue
		}
		for _, m := range enumValue.FindAllStringSubmatch(c.Type, -1) {
			n, err := strconv.ParseUint(m[2], 10, 8)
			if err != nil {
				panic(err) // the declaration is part of the program
			}
			out[m[1]] = T(n)
		}
	}
	return out
}

// Line returns a row as text: the values of all columns except without, separated by spaces. The engine computes the
// same text with LineSQL.
func (t *Table[T]) Line(row *T, without ...string) string {
	var b strings.Builder
	v := reflect.ValueOf(row).Elem()
	for _, c := range t.Columns {
		if slices.Contains(without, c.Name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		switch value := v.Field(c.field).Addr().Interface().(type) {
		case *Amount:
			b.WriteString(mapping.Decimal(value))
		case *bool:
			b.WriteString(map[bool]string{false: "0", true: "1"}[*value])
		case *common.Address:
			fmt.Fprintf(&b, "%x", value[:])
		case *common.Hash:
			fmt.Fprintf(&b, "%x", value[:])
		case *string:
			fmt.Fprintf(&b, "%x", *value)
		case *TouchedKeys:
			fmt.Fprintf(&b, "%x", string(*value))
		default:
			fmt.Fprint(&b, reflect.ValueOf(value).Elem().Interface())
		}
	}
	return b.String()
}

// LineSQL returns the expression that computes the text of Line in the engine.
func (t *Table[T]) LineSQL(without ...string) string {
	var words []string
	for _, c := range t.except(without) {
		word := "toString(" + c.Name + ")"
		switch {
		case c.Type == "Bool":
			word = "toString(toUInt8(" + c.Name + "))"
		case strings.HasPrefix(c.Type, "Array"):
			word = "lower(hex(arrayStringConcat(" + c.Name + ")))"
		case strings.Contains(c.Type, "String"): // text and bytes
			word = "lower(hex(" + c.Name + "))"
		}
		words = append(words, word)
	}
	return "concatWithSeparator(' ', " + strings.Join(words, ", ") + ")"
}
