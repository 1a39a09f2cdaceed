package rpc

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-faster/jx"

	"github.com/navlog/navlog/schemas/printable"
)

// JSON is read without building anything: values are slices of the text. A value that is not read is only checked, so
// that a response of many megabytes costs little more than its transfer. Errors are errTruncated and errNotJSON, or
// name a value of the wrong type.

// object reads text that is one object, and calls one with each of its members.
func object(text []byte, expected string, one func(name, value []byte) error) error {
	d := jx.DecodeBytes(text)
	if err := members(d, expected, one); err != nil {
		return err
	}
	return end(d)
}

// maxMembers is ten times the members of any object that is read. Without it, one with millions of them would take
// minutes.
const maxMembers = 1000

// members reads the next value, an object, and calls one with each of its members.
func members(d *jx.Decoder, expected string, one func(name, value []byte) error) error {
	if d.Next() != jx.Object {
		return unexpected(d, expected)
	}
	all, err := d.ObjIter()
	if err != nil {
		return malformed(err)
	}
	for n := 0; all.Next(); n++ {
		if n == maxMembers {
			return fmt.Errorf("it has more than %d members and must be %s", maxMembers, expected)
		}
		name := all.Key()
		value, err := next(d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := one(name, value); err != nil {
			return err
		}
	}
	return malformed(all.Err())
}

// list reads text that is one array, and calls one at each of its elements, which it must read.
func list(text []byte, expected string, one func(d *jx.Decoder) error) error {
	d := jx.DecodeBytes(text)
	if d.Next() != jx.Array {
		return unexpected(d, expected)
	}
	all, err := d.ArrIter()
	if err != nil {
		return malformed(err)
	}
	for all.Next() {
		if err := one(d); err != nil {
			return err
		}
	}
	if err := all.Err(); err != nil {
		return malformed(err)
	}
	return end(d)
}

// next returns the next value of any type as it is written.
func next(d *jx.Decoder) ([]byte, error) {
	d.Next() // skips white space
	value, err := d.Raw()
	return value, malformed(err)
}

// end checks that no further value follows.
func end(d *jx.Decoder) error {
	switch err := d.Skip(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%w: something else comes after it", errNotJSON)
	}
	return fmt.Errorf("%w: another value comes after it", errNotJSON)
}

// unexpected reads the next value, and returns an error that compares it with what was expected.
func unexpected(d *jx.Decoder, expected string) error {
	value, err := next(d)
	if err != nil {
		return err
	}
	return unexpectedValue(value, expected)
}

// malformed returns the fault of a text from an error of its decoder.
func malformed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Errorf("%w: %s", errNotJSON, printable.Text(err.Error(), 100))
}

var null = []byte("null")

// none reports whether a value is missing or null.
func none(value []byte) bool { return value == nil || bytes.Equal(value, null) }

func unexpectedValue(value []byte, expected string) error {
	if value == nil {
		return fmt.Errorf("it is missing and must be %s", expected)
	}
	return fmt.Errorf("it is %s and not %s", printable.Text(string(value[:min(len(value), 60)]), 60), expected)
}

func text(value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, unexpectedValue(value, "a string")
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	var unescaped string
	if json.Unmarshal(value, &unescaped) != nil {
		return nil, fmt.Errorf("%w: a string is %.40q", errNotJSON, value)
	}
	return []byte(unescaped), nil
}

// quantity reads a number of 64 bits: as JSON-RPC writes it, in hexadecimal after 0x, perhaps with leading zeros; or as
// a JSON integer. Digits in quotes without 0x may be of either base and are rejected.
func quantity(value []byte) (n uint64, err error) {
	if none(value) {
		return 0, unexpectedValue(value, "a number")
	}
	switch c := value[0]; {
	case c >= '0' && c <= '9' || c == '-':
		whole, fraction, _ := bytes.Cut(value, []byte("."))
		n, err := strconv.ParseUint(string(whole), 10, 64)
		if err != nil || len(bytes.Trim(fraction, "0")) > 0 {
			return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", value)
		}
		return n, nil
	case c != '"':
		return 0, unexpectedValue(value, "a number")
	}
	digits, err := text(value)
	if err != nil {
		return 0, err
	}
	if !hasHexPrefix(digits) {
		return 0, fmt.Errorf("%.20q has no 0x, so that its base is not known", digits)
	}
	if n, err = strconv.ParseUint(string(digits[2:]), 16, 64); err != nil {
		return 0, fmt.Errorf("%.20q is not a number of 64 bits", digits)
	}
	return n, nil
}

// index reads a quantity that fits 32 bits.
func index(value []byte) (uint32, error) {
	n, err := quantity(value)
	if err == nil && n > 1<<32-1 {
		err = fmt.Errorf("%d does not fit 32 bits", n)
	}
	return uint32(n), err
}

func hasHexPrefix(text []byte) bool { return len(text) >= 2 && text[0] == '0' && text[1]|0x20 == 'x' }

// digits returns the hexadecimal digits of any number of bytes; null, "" and "0x" are no bytes. Some nodes omit the 0x,
// and bytes are never decimal.
func digits(value []byte) ([]byte, error) {
	if none(value) {
		return nil, nil
	}
	d, err := text(value)
	if err != nil {
		return nil, err
	}
	if hasHexPrefix(d) {
		d = d[2:]
	}
	if len(d)%2 != 0 {
		return nil, fmt.Errorf("it has an odd number of digits, %d", len(d))
	}
	return d, nil
}

// decodeFixed reads exactly as many bytes as fit into out.
func decodeFixed(out, value []byte) error {
	if none(value) {
		return unexpectedValue(value, "a string")
	}
	d, err := digits(value)
	if err == nil && len(d) != 2*len(out) {
		err = fmt.Errorf("%.20q… has %d hexadecimal digits and must have %d", value, len(d), 2*len(out))
	}
	if err == nil {
		_, err = hex.Decode(out, d)
	}
	return err
}
