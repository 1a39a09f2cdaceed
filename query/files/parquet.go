package files

import (
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
)

const (
	// groupRows is the maximum number of rows in a row group. A group is held in memory, compressed, until it is
	// complete, about 200 bytes a row: smaller groups use less memory. The description of each group is held until the
	// end, and readers read group by group: larger ones use less for millions of rows.
	groupRows = 1 << 14
	// pageBytes is how many bytes of a column are compressed at once.
	pageBytes = 64 << 10
	// rowsAtOnce is how many rows are passed on at once: a page ends only after all of them.
	rowsAtOnce = 256
)

// parquetWriter writes one row group after another, and finally the footer, without which a Parquet file is invalid.
type parquetWriter[T any] struct {
	columns []column
	out     *parquet.GenericWriter[any] // of rows already split into values
	rows    []parquet.Row
}

func newParquet[T any](columns []column, out io.Writer) *parquetWriter[T] {
	rows := make([]parquet.Row, rowsAtOnce)
	for i := range rows {
		rows[i] = make(parquet.Row, len(columns))
	}
	return &parquetWriter[T]{columns: columns, rows: rows,
		out: parquet.NewGenericWriter[any](out, parquet.NewSchema("rows", newGroup(columns)),
			parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows), parquet.PageBufferSize(pageBytes),
			parquet.CreatedBy("navlog", "1", ""))}
}

// group keeps the columns in the order of the list; parquet.Group sorts them by name.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g *group) Fields() []parquet.Field { return g.fields }

func newGroup(columns []column) *group {
	g := &group{Group: parquet.Group{}}
	place := make(map[string]int, len(columns))
	for i := range columns {
		g.Group[columns[i].name], place[columns[i].name] = columns[i].node(), i
	}
	g.fields = g.Group.Fields()
	slices.SortFunc(g.fields, func(a, b parquet.Field) int { return place[a.Name()] - place[b.Name()] })
	return g
}

func (c *column) node() parquet.Node {
	var n parquet.Node
	switch c.kind {
	case instant:
		n = parquet.Timestamp(parquet.Millisecond)
	case number:
		n = parquet.Uint(64)
	case count:
		n = parquet.Int(64)
	case truth:
		n = parquet.Leaf(parquet.BooleanType)
	default:
		n = parquet.String()
	}
	if c.optional {
		return parquet.Optional(n)
	}
	return n
}

func (w *parquetWriter[T]) Write(rows []T) error {
	for some := range slices.Chunk(rows, len(w.rows)) {
		for r := range some {
			row := reflect.ValueOf(&some[r]).Elem()
			for i := range w.columns {
				value, err := w.columns[i].value(row)
				if err != nil {
					return err
				}
				definition := 0
				if w.columns[i].optional && !value.IsNull() {
					definition = 1
				}
				w.rows[r][i] = value.Level(0, definition, i)
			}
		}
		if _, err := w.out.WriteRows(w.rows[:len(some)]); err != nil {
			return err
		}
	}
	return nil
}

func (c *column) value(row reflect.Value) (parquet.Value, error) {
	value, there := c.of(row)
	if !there {
		return parquet.NullValue(), nil
	}
	switch c.kind {
	case instant:
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return parquet.Value{}, c.wrong(value, err)
		}
		return parquet.Int64Value(at.UnixMilli()), nil
	case number:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return parquet.Value{}, c.wrong(value, err)
		}
		return parquet.Int64Value(int64(n)), nil // the same bits
	case count:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return parquet.Value{}, c.wrong(value, err)
		}
		return parquet.Int64Value(n), nil
	case truth:
		return parquet.BooleanValue(value == "true"), nil
	default:
		return parquet.ByteArrayValue([]byte(value)), nil
	}
}

func (w *parquetWriter[T]) Close() error { return w.out.Close() }
