// Package printable makes untrusted text safe to log, store and show: text from a node, a receiver or a contract may
// contain any bytes. PostgreSQL rejects a NUL, terminals interpret control characters, and characters that change the
// writing direction make a line look different from its content.
//
// Text is for the place where untrusted text enters. JSON is for storing a whole document with such text; it does not
// rely on Text having been used everywhere. Cell is for a CSV file, which a spreadsheet may open.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Maximum lengths of untrusted text in bytes.
const (
	// Sentence is for the reason of a failure.
	Sentence = 500
	// Message is for an error that wraps such reasons, possibly of several endpoints.
	Message = 4000
)

// Text returns the beginning of text, at most this many bytes, as valid UTF-8 on one line. White space of any kind
// becomes a space. Everything unprintable becomes U+FFFD: each control character, including NUL, each character without
// width or that changes the writing direction, and each run of bytes that are not UTF-8.
func Text(text string, most int) string {
	if len(text) <= most && plain(text) {
		return text
	}
	var line strings.Builder
	for invalid := false; len(text) > 0; {
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		before := invalid
		if invalid = r == utf8.RuneError && size == 1; invalid && before {
			continue
		}
		r = printed(r)
		if line.Len()+utf8.RuneLen(r) > most {
			break
		}
		line.WriteRune(r)
	}
	return line.String()
}

func printed(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	}
	return r
}

// plain reports whether a text consists of printable ASCII characters, as most texts do.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Count returns a number and what it counts: one for 1, and many for every other number, which is one with an s if it
// is not given.
func Count[N int | int32 | int64 | uint32 | uint64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) == 0:
		return fmt.Sprintf("%d %ss", n, one)
	}
	return fmt.Sprintf("%d %s", n, many[0])
}

// JSON returns a JSON document without the escapes that PostgreSQL's jsonb rejects: a NUL, or half of a surrogate pair.
// Each of them becomes U+FFFD. It returns the document itself if it has none.
func JSON(document []byte) []byte {
	var out []byte
	copied := 0
	for i := 0; i < len(document); {
		if document[i] != '\\' {
			i++
			continue
		}
		unit, ok := escaped(document[i:])
		if !ok {
			i += 2 // \n, \", \\ and the like
			continue
		}
		length, fine := 6, unit != 0
		if unit >= 0xd800 && unit <= 0xdfff {
			low, paired := uint16(0), false
			if i+6 <= len(document) {
				low, paired = escaped(document[i+6:])
			}
			if fine = paired && unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff; fine {
				length = 12
			}
		}
		if !fine {
			out = append(append(out, document[copied:i]...), `\ufffd`...)
			copied = i + length
		}
		i += length
	}
	if out == nil {
		return document
	}
	return append(out, document[copied:]...)
}

// escaped parses an escape such as \u0041 at the beginning of b.
func escaped(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		var digit byte
		switch {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			digit = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(digit)
	}
	return unit, true
}
