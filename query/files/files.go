// Package files writes the rows of a list as CSV or Parquet. It depends on no HTTP and no resource: a list defines
// its columns, and each column how it gets its value from a row.
//
// A column returns text, the same text as in JSON, or nothing if that is null. CSV writes it unchanged. Parquet
// writes amounts as text too, because on-chain numbers have up to 256 bits and its DECIMAL at most 127; times, counts
// and numbers of up to 64 bits have types of their own.
package files

import (
	"fmt"
	"io"
	"strconv"
)

// Format is a file format.
type Format string

// The formats, by the names that clients use.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Kinds are the media types of the formats.
var Kinds = map[Format]string{CSV: "text/csv", Parquet: "application/vnd.apache.parquet"}

// ContentType returns the Content-Type of a file of the format.
func (f Format) ContentType() string {
	if f == CSV {
		return Kinds[f] + "; charset=utf-8; header=present"
	}
	return Kinds[f]
}

// kind is the meaning of a column's text.
type kind int

const (
	text    kind = iota
	foreign      // untrusted text
	instant      // ISO 8601 in UTC with milliseconds
	number       // a non-negative integer of at most 64 bits
	count        // a signed integer of at most 64 bits
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

// Text is a column of text that navlog produces: addresses, hashes, amounts, kinds.
func Text[T any](name string, of func(*T) string) Column[T] { return always(name, text, of) }

// TextOrNull is Text that may be null.
func TextOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, text, of) }

// Foreign is a column of untrusted text, such as a token's name: see guarded.
func Foreign[T any](name string, of func(*T) string) Column[T] { return always(name, foreign, of) }

// ForeignOrNull is Foreign that may be null.
func ForeignOrNull[T any](name string, of func(*T) *string) Column[T] {
	return orNull(name, foreign, of)
}

// Time is a column of times in the format of the API.
func Time[T any](name string, of func(*T) string) Column[T] { return always(name, instant, of) }

// TimeOrNull is Time that may be null.
func TimeOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, instant, of) }

// Number is a column of numbers of at most 64 bits that the API writes as decimal strings, such as block numbers.
func Number[T any](name string, of func(*T) string) Column[T] { return always(name, number, of) }

// NumberOrNull is Number that may be null.
func NumberOrNull[T any](name string, of func(*T) *string) Column[T] { return orNull(name, number, of) }

// Count is a column of integers that are numbers in JSON, too.
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

// Writer writes a file, a batch of rows at a time. A file is incomplete until Close.
type Writer[T any] interface {
	Write(rows []T) error
	Close() error
}

// NewWriter begins a file. The writer's methods return the errors of out, and an error if a text does not match the
// kind of its column.
func NewWriter[T any](f Format, columns []Column[T], out io.Writer) Writer[T] {
	if f == Parquet {
		return newParquet(columns, out)
	}
	return newCSV(columns, out)
}

// wrong returns the error for a text that does not match the kind of its column: a programming error.
func wrong[T any](c *Column[T], value string, err error) error {
	return fmt.Errorf("write %q into column %s: %w", value, c.Name, err)
}
