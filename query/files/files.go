// Package files writes the rows of a list as CSV or Parquet. It depends on no HTTP and no resource: the columns are the
// fields of a row in JSON (columnsOf).
//
// A column returns text, the same text as in JSON, or nothing if that is null. CSV writes it unchanged. Parquet
// writes amounts as text too, because on-chain numbers have up to 256 bits and its DECIMAL at most 127; times, counts
// and numbers of up to 64 bits have types of their own.
package files

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Format is a file format.
type Format string

// The formats, by the names that clients use.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

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

// column is one column of the rows of a list.
type column struct {
	name     string
	kind     kind
	optional bool
	index    []int // of the field in a row
}

// tagged are the kinds by the values of the tag file.
var tagged = map[string]kind{"": text, "foreign": foreign, "time": instant, "number": number}

// columnsOf returns the columns of rows of a type, a struct of JSON: its fields in their order, under their names in
// JSON. A field of a struct within it is named parent.field. The tag file names the kind of a text that is not text of
// navlog such as an address, a hash, an amount or a kind: foreign is untrusted text such as a token's name
// (printable.Cell), time is a time in the format of the API, and number is a number of at most 64 bits that JSON has as
// a decimal string. Integers and booleans have their own types, and a pointer may be null. A field with the tag "-" has
// no column.
func columnsOf(rows reflect.Type, parent column) (out []column) {
	for i := range rows.NumField() {
		field := rows.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		c := column{name: parent.name + name, optional: parent.optional, index: append(slices.Clone(parent.index), i)}
		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
			c.optional = c.optional || !field.Anonymous
		}
		tag := field.Tag.Get("file")
		var known bool
		switch c.kind, known = tagged[tag]; {
		case tag == "-":
			continue
		case of.Implements(stringer), of.Kind() == reflect.String && known:
		case of.Kind() == reflect.Bool:
			c.kind = truth
		case of.Kind() >= reflect.Int && of.Kind() <= reflect.Uint64:
			c.kind = count
		case of.Kind() == reflect.Struct:
			if name != "" {
				c.name += "."
			}
			out = append(out, columnsOf(of, c)...)
			continue
		default:
			panic(fmt.Sprintf("the field %s of %s cannot be a column", field.Name, rows))
		}
		out = append(out, c)
	}
	return out
}

var stringer = reflect.TypeFor[fmt.Stringer]()

// of returns the text of the column in a row, or false if it is null.
func (c *column) of(row reflect.Value) (value string, there bool) {
	for _, i := range c.index {
		if row.Kind() == reflect.Pointer {
			if row.IsNil() {
				return "", false
			}
			row = row.Elem()
		}
		row = row.Field(i)
	}
	if row.Kind() == reflect.Pointer {
		if row.IsNil() {
			return "", false
		}
		row = row.Elem()
	}
	switch {
	case row.Kind() == reflect.String:
		return row.String(), true
	case c.kind == truth:
		return strconv.FormatBool(row.Bool()), true
	case row.CanInt():
		return strconv.FormatInt(row.Int(), 10), true
	case row.CanUint():
		return strconv.FormatUint(row.Uint(), 10), true
	}
	return row.Interface().(fmt.Stringer).String(), true
}

// Writer writes a file, a batch of rows at a time. A file is incomplete until Close.
type Writer[T any] interface {
	Write(rows []T) error
	Close() error
}

// NewWriter begins a file. The writer's methods return the errors of out, and an error if a text does not match the
// kind of its column.
func NewWriter[T any](f Format, out io.Writer) Writer[T] {
	columns := columnsOf(reflect.TypeFor[T](), column{})
	if f == Parquet {
		return newParquet[T](columns, out)
	}
	return newCSV[T](columns, out)
}

// wrong returns the error for a text that does not match the kind of its column: a programming error.
func (c *column) wrong(value string, err error) error {
	return fmt.Errorf("write %q into column %s: %w", value, c.name, err)
}
