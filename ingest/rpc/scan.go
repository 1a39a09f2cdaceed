package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/navlog/navlog/schemas/printable"
)

// scanner reads one JSON value and returns its parts as they are written, without building anything. A value that is
// skipped is only searched for its end. Its errors are errTruncated and errNotJSON, or name a value of the wrong type.
type scanner struct {
	b  []byte
	at int
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

// null reads null if it is next.
func (s *scanner) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.b[s.at:], null) {
		s.at += len(null)
		return true
	}
	return false
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

// name reads the name of a member and the colon.
func (s *scanner) name() ([]byte, error) {
	name, err := s.text()
	if err != nil {
		return nil, err
	}
	return name, s.take(':')
}

// text reads a string and returns its contents. The strings that are needed contain escapes only in contrived
// responses.
func (s *scanner) text() ([]byte, error) {
	if c := s.peek(); c != '"' && c != 0 {
		return nil, s.otherThan("a string")
	}
	from := s.at
	raw, err := s.quoted()
	if err != nil || bytes.IndexByte(raw, '\\') < 0 {
		return raw, err
	}
	var unescaped string
	if json.Unmarshal(s.b[s.at-len(raw)-2:s.at], &unescaped) != nil {
		return nil, fmt.Errorf("%w: the string at byte %d is %.40q", errNotJSON, from, raw)
	}
	return []byte(unescaped), nil
}

// quoted reads a string and returns its contents, with escapes unchanged.
func (s *scanner) quoted() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	from := s.at
	for {
		end := bytes.IndexByte(s.b[s.at:], '"')
		if end < 0 {
			return nil, errTruncated
		}
		s.at += end + 1
		raw := s.b[from : s.at-1]
		slashes := 0 // before the quote: an odd number of them escapes it
		for slashes < len(raw) && raw[len(raw)-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return raw, nil
		}
	}
}

// otherThan reads the next value and returns an error that compares it with what was expected.
func (s *scanner) otherThan(expected string) error {
	value, err := s.value()
	if err != nil {
		return err
	}
	return fmt.Errorf("it is %s and not %s", printable.Text(string(value[:min(len(value), 60)]), 60), expected)
}

// flag reads true or false.
func (s *scanner) flag() (bool, error) {
	switch {
	case bytes.HasPrefix(s.b[s.at:], []byte("true")):
		s.at += len("true")
		return true, nil
	case bytes.HasPrefix(s.b[s.at:], []byte("false")):
		s.at += len("false")
		return false, nil
	default:
		return false, s.otherThan("true or false")
	}
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
		_, err := s.quoted()
		return err
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
	if word := s.b[from:s.at]; !json.Valid(word) {
		return s.notJSON(word)
	}
	return nil
}

// notJSON returns the error for a word that is not a JSON value. A prefix of a value at the very end counts as
// truncated.
func (s *scanner) notJSON(word []byte) error {
	if s.at == len(s.b) {
		for _, whole := range []string{"null", "true", "false"} {
			if bytes.HasPrefix([]byte(whole), word) {
				return errTruncated
			}
		}
	}
	return fmt.Errorf("%w: it has %.40q", errNotJSON, word)
}

// skipNested skips an array or object. It only counts brackets, since the contents are not needed.
func (s *scanner) skipNested() error {
	for depth := 0; s.at < len(s.b); {
		switch s.b[s.at] {
		case '"':
			if _, err := s.quoted(); err != nil {
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

// nibbles maps a hexadecimal digit to its value, and any other byte to bad.
var nibbles = func() (table [256]byte) {
	for i := range table {
		table[i] = bad
	}
	for i := range byte(10) {
		table['0'+i] = i
	}
	for i := range byte(6) {
		table['a'+i], table['A'+i] = 10+i, 10+i
	}
	return table
}()

const bad = 0xff

// prefixed reports whether a text begins with 0x.
func prefixed(text []byte) bool { return len(text) >= 2 && text[0] == '0' && text[1]|0x20 == 'x' }

// digits removes the prefix of a hexadecimal string. Some nodes write bytes without it, and bytes are never decimal.
func digits(text []byte) []byte {
	if prefixed(text) {
		return text[2:]
	}
	return text
}

// unhex decodes digits into out, which is half as long.
func unhex(out, digits []byte) error {
	digits = digits[:2*len(out)]
	for i := range out {
		high, low := nibbles[digits[2*i]], nibbles[digits[2*i+1]]
		if high|low > 0x0f {
			return fmt.Errorf("%.20q is no pair of hexadecimal digits", digits[2*i:2*i+2])
		}
		out[i] = high<<4 | low
	}
	return nil
}

// quantity reads a number of 64 bits: as JSON-RPC writes it, in hexadecimal after 0x, perhaps with leading zeros; or as
// a JSON integer. Digits in quotes without 0x may be of either base and are rejected.
func (s *scanner) quantity() (n uint64, err error) {
	switch c := s.peek(); {
	case c >= '0' && c <= '9' || c == '-':
		return s.integer()
	case c != '"' && c != 0:
		return 0, s.otherThan("a number")
	}
	text, err := s.text()
	if err != nil {
		return 0, err
	}
	if !prefixed(text) {
		return 0, fmt.Errorf("%.20q has no 0x, so that its base is not known", text)
	}
	d := bytes.TrimLeft(text[2:], "0")
	if len(text) == 2 || len(d) > 16 {
		return 0, fmt.Errorf("%.20q is not a number of 64 bits", text)
	}
	for _, c := range d {
		nibble := nibbles[c]
		if nibble == bad {
			return 0, fmt.Errorf("%.20q is not a number", text)
		}
		n = n<<4 | uint64(nibble)
	}
	return n, nil
}

// integer reads a JSON number that is a whole number.
func (s *scanner) integer() (uint64, error) {
	word, err := s.value()
	if err != nil {
		return 0, err
	}
	whole, fraction, _ := bytes.Cut(word, []byte("."))
	n, err := strconv.ParseUint(string(whole), 10, 64)
	if err != nil || len(bytes.Trim(fraction, "0")) > 0 {
		return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", word)
	}
	return n, nil
}

// index reads a quantity that fits 32 bits.
func (s *scanner) index() (uint32, error) {
	n, err := s.quantity()
	if err == nil && n > 1<<32-1 {
		err = fmt.Errorf("%d does not fit 32 bits", n)
	}
	return uint32(n), err
}

// fixed reads exactly as many bytes as fit into out.
func (s *scanner) fixed(out []byte) error {
	d, err := s.fixedDigits(len(out))
	if err != nil {
		return err
	}
	return unhex(out, d)
}

func (s *scanner) fixedDigits(size int) ([]byte, error) {
	text, err := s.text()
	if err != nil {
		return nil, err
	}
	d := digits(text)
	if len(d) != 2*size {
		err = fmt.Errorf("%.20q… has %d hexadecimal digits and must have %d", text, len(d), 2*size)
	}
	return d, err
}
