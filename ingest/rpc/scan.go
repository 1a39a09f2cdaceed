package rpc

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/navlog/navlog/schemas/printable"
)

// scanner finds the parts of JSON text without building anything: it returns values as they are written, and the
// functions below read them. A value that is not read is only searched for its end, so that a response of many megabytes
// costs little more than its transfer; jsontext, the token reader of encoding/json, takes four times as long for this.
// Errors are errTruncated and errNotJSON, or name a value of the wrong type.
type scanner struct {
	b  []byte
	at int
}

// object reads text that is one object, and calls one with each of its members.
func object(text []byte, expected string, one func(name, value []byte) error) error {
	s := scanner{b: text}
	if err := s.object(expected, one); err != nil {
		return err
	}
	return s.end()
}

// list reads text that is one array, and calls one at each of its elements, which it must read.
func list(text []byte, expected string, one func(s *scanner) error) error {
	s := scanner{b: text}
	if c := s.peek(); c != '[' && c != 0 {
		return s.otherThan(expected)
	}
	if err := s.members('[', ']', func() error { return one(&s) }); err != nil {
		return err
	}
	return s.end()
}

// whole returns the only value of a text.
func whole(text []byte) ([]byte, error) {
	s := scanner{b: text}
	value, err := s.value()
	if err == nil {
		err = s.end()
	}
	return value, err
}

// peek returns the next byte that is not white space; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.b); s.at++ {
		if c := s.b[s.at]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func (s *scanner) take(c byte) error {
	if got := s.peek(); got != c {
		return s.unexpected(got)
	}
	s.at++
	return nil
}

func (s *scanner) unexpected(c byte) error {
	if s.at >= len(s.b) {
		return errTruncated
	}
	return fmt.Errorf("%w: %q at byte %d", errNotJSON, c, s.at)
}

// members calls one for each member of the next array or object.
func (s *scanner) members(open, end byte, one func() error) error {
	if err := s.take(open); err != nil {
		return err
	}
	if s.peek() == end {
		s.at++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		switch c := s.peek(); c {
		case ',':
			s.at++
		case end:
			s.at++
			return nil
		default:
			return s.unexpected(c)
		}
	}
}

// object reads the next object, and calls one with each of its members.
func (s *scanner) object(expected string, one func(name, value []byte) error) error {
	if c := s.peek(); c != '{' && c != 0 {
		return s.otherThan(expected)
	}
	return s.members('{', '}', func() error {
		s.peek()
		from := s.at
		if err := s.quoted(); err != nil {
			return err
		}
		name, err := text(s.b[from:s.at])
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		value, err := s.value()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return one(name, value)
	})
}

// otherThan reads the next value and returns an error that compares it with what was expected.
func (s *scanner) otherThan(expected string) error {
	value, err := s.value()
	if err != nil {
		return err
	}
	return otherThan(value, expected)
}

// value returns the next value of any type as it is written.
func (s *scanner) value() ([]byte, error) {
	s.peek()
	from := s.at
	err := s.skip()
	return s.b[from:s.at], err
}

// skip skips the next value of any type.
func (s *scanner) skip() error {
	switch c := s.peek(); c {
	case '"':
		return s.quoted()
	case '{', '[':
		return s.skipNested()
	case 0, '}', ']', ',', ':':
		return s.unexpected(c)
	}
	from := s.at
	if end := bytes.IndexAny(s.b[from:], ",]} \t\r\n"); end >= 0 {
		s.at += end
	} else {
		s.at = len(s.b)
	}
	word := s.b[from:s.at]
	switch {
	case json.Valid(word):
		return nil
	case s.at == len(s.b) && (bytes.HasPrefix(null, word) || bytes.HasPrefix([]byte("true"), word) || bytes.HasPrefix([]byte("false"), word)):
		return errTruncated
	}
	return fmt.Errorf("%w: it has %.40q", errNotJSON, word)
}

// quoted skips a string.
func (s *scanner) quoted() error {
	if err := s.take('"'); err != nil {
		return err
	}
	from := s.at
	for {
		end := bytes.IndexByte(s.b[s.at:], '"')
		if end < 0 {
			return errTruncated
		}
		s.at += end + 1
		slashes := 0 // before the quote: an odd number of them escapes it
		for at := s.at - 2; at >= from && s.b[at] == '\\'; at-- {
			slashes++
		}
		if slashes%2 == 0 {
			return nil
		}
	}
}

// skipNested skips an array or object. It only counts brackets, since the contents are not needed.
func (s *scanner) skipNested() error {
	for depth := 0; s.at < len(s.b); {
		switch s.b[s.at] {
		case '"':
			if err := s.quoted(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return nil
			}
		}
		s.at++
	}
	return errTruncated
}

// end checks that no further value follows.
func (s *scanner) end() error {
	if c := s.peek(); s.at < len(s.b) {
		return s.unexpected(c)
	}
	return nil
}

var null = []byte("null")

// none reports whether a value is missing or null.
func none(value []byte) bool { return value == nil || bytes.Equal(value, null) }

func otherThan(value []byte, expected string) error {
	return fmt.Errorf("it is %s and not %s", printable.Text(string(value[:min(len(value), 60)]), 60), expected)
}

// text returns the contents of a string. The strings that are needed contain escapes only in contrived responses.
func text(value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, otherThan(value, "a string")
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

// flag checks that a value is true or false.
func flag(value []byte) error {
	if v := string(value); v != "true" && v != "false" {
		return otherThan(value, "true or false")
	}
	return nil
}

// quantity reads a number of 64 bits: as JSON-RPC writes it, in hexadecimal after 0x, perhaps with leading zeros; or as
// a JSON integer. Digits in quotes without 0x may be of either base and are rejected.
func quantity(value []byte) (n uint64, err error) {
	switch c := value[0]; {
	case c >= '0' && c <= '9' || c == '-':
		whole, fraction, _ := bytes.Cut(value, []byte("."))
		n, err := strconv.ParseUint(string(whole), 10, 64)
		if err != nil || len(bytes.Trim(fraction, "0")) > 0 {
			return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", value)
		}
		return n, nil
	case c != '"':
		return 0, otherThan(value, "a number")
	}
	digits, err := text(value)
	if err != nil {
		return 0, err
	}
	if !prefixed(digits) {
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

// prefixed reports whether a text begins with 0x.
func prefixed(text []byte) bool { return len(text) >= 2 && text[0] == '0' && text[1]|0x20 == 'x' }

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
	if prefixed(d) {
		d = d[2:]
	}
	if len(d)%2 != 0 {
		return nil, fmt.Errorf("it has an odd number of digits, %d", len(d))
	}
	return d, nil
}

// fixed reads exactly as many bytes as fit into out.
func fixed(out, value []byte) error {
	if none(value) {
		return otherThan(value, "a string")
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
