// Package files writes the rows of a list as CSV or Parquet. It knows no HTTP and no
// resource: a list says which columns it has, and each column how a row fills it.
//
// A column gives text, the very text that the list has in JSON, or nothing where that is
// null. CSV writes it as it is. Parquet writes amounts as text too, for the numbers of the
// chain have up to 256 bits and its DECIMAL at most 127, and gives their own type to times,
// to counts and to the numbers that fit into 64 bits.
package files

import (
	"fmt"
	"io"
	"strconv"
)

// Format is what a file is written in.
type Format string

// The formats, by the names that clients give them.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Kinds are the media types of the formats.
var Kinds = map[Format]string{CSV: "text/csv", Parquet: "application/vnd.apache.parquet"}

// ContentType is what a file of the format says of itself.
func (f Format) ContentType() string {
	if f == CSV {
		return Kinds[f] + "; charset=utf-8; header=present"
	}
	return Kinds[f]
}

// kind is what the text of a column means.
type kind int

const (
	text    kind = iota
	foreign      // text that strangers chose
	instant      // ISO 8601 in UTC with milliseconds
	number       // a whole number from 0 that fits into 64 bits
	count        // a whole number with a sign that fits into 64 bits
	truth        // true or false
)

// Column is one column of the rows T of a list.
type Column[T any] struct {
	Name string

	kind     kind
	optional bool
	of       func(*T) (value string, there bool)
}

func always[T any](name string, k kind, of func(*T) string) Column[T] {
	return Column[T]{Name: name, kind: k, of: func(row *T) (string, bool) { return of(row), true }}
}

func orNull[T any](name string, k kind, of func(*T) *string) Column[T] {
	return Column[T]{Name: name, kind: k, optional: true, of: func(row *T) (string, bool) {
		if value := of(row); value != nil {
			return *value, true
		}
		return "", false
	}}
}

// Text is a column of our own words: addresses, hashes, amounts, kinds.
func Text[T any](name string, of func(*T) string) Column[T] { return always(name, text, of) }

// TextOrNull is Text that may be null.
func TextOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, text, of) }

// Foreign is a column of text that strangers chose, such as a token's name: see guarded.
func Foreign[T any](name string, of func(*T) string) Column[T] { return always(name, foreign, of) }

// ForeignOrNull is Foreign that may be null.
func ForeignOrNull[T any](name string, of func(*T) *string) Column[T] {
	return orNull(name, foreign, of)
}

// Time is a column of times as answers write them.
func Time[T any](name string, of func(*T) string) Column[T] { return always(name, instant, of) }

// TimeOrNull is Time that may be null.
func TimeOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, instant, of) }

// Number is a column of numbers that answers write as decimal strings and that have 64
// bits at most, such as those of blocks.
func Number[T any](name string, of func(*T) string) Column[T] { return always(name, number, of) }

// NumberOrNull is Number that may be null.
func NumberOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, number, of) }

// Count is a column of integers that are numbers in JSON too.
func Count[T any](name string, of func(*T) int64) Column[T] {
	return always(name, count, func(row *T) string { return strconv.FormatInt(of(row), 10) })
}

// CountOrNull is Count that may be null.
func CountOrNull[T any, N int32 | uint32 | int64](name string, of func(*T) *N) Column[T] {
	return orNull(name, count, func(row *T) *string {
		n := of(row)
		if n == nil {
			return nil
		}
		s := strconv.FormatInt(int64(*n), 10)
		return &s
	})
}

// Truth is a column of true and false.
func Truth[T any](name string, of func(*T) bool) Column[T] {
	return always(name, truth, func(row *T) string { return strconv.FormatBool(of(row)) })
}

// Writer writes a file, some rows at a time. Close ends it: a file that was not closed is
// not whole.
type Writer[T any] interface {
	Write(rows []T) error
	Close() error
}

// NewWriter begins a file. Its errors are those of out, and of a row whose text is not what
// its column says.
func NewWriter[T any](f Format, columns []Column[T], out io.Writer) Writer[T] {
	if f == Parquet {
		return newParquet(columns, out)
	}
	return newCSV(columns, out)
}

// wrong is a text that is not what its column says: a mistake of ours.
func wrong[T any](c *Column[T], value string, err error) error {
	return fmt.Errorf("write %q into column %s: %w", value, c.Name, err)
}
