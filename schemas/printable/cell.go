package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cell makes untrusted text harmless in a cell of a CSV file. A spreadsheet runs everything that looks like a formula:
// anyone can deploy a token called =HYPERLINK(...), and quotes do not stop a spreadsheet from running it.
//
// An apostrophe is put before each part of the text that begins with a formula sign. White space, quotes and
// zero-width characters before the sign are skipped, because some programs drop them; full-width and small signs
// count, because some programs convert them. Parts end at list separators, because a spreadsheet in another locale
// splits a line at semicolons or tabs, even within quotes that do not begin its field. Other control characters,
// above all those that change text direction, are written as \u and four digits: they would move the columns next to
// the name.
func Cell(value string) string {
	if isHarmless(value) {
		return value
	}
	var b strings.Builder
	for value != "" {
		end := len(value)
		if at := strings.IndexAny(value, separators); at >= 0 {
			_, width := utf8.DecodeRuneInString(value[at:])
			end = at + width
		}
		part := value[:end]
		value = value[end:]
		if beginsFormula(part) {
			b.WriteByte('\'')
		}
		for _, r := range part {
			if isControl(r) {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

const (
	// separators are characters at which a spreadsheet may split a line. A comma is not one of them: fields that
	// contain one are quoted.
	separators = ";|\t\r\n\v\f\u0085\u2028\u2029"
	// formulaSigns are the characters that begin a formula.
	formulaSigns = "=+-@" + "＝＋－＠" + "﹦﹢﹣﹫" + "−"
)

// isHarmless reports whether a text has no character that Cell must handle, which is true of nearly all names.
func isHarmless(value string) bool {
	for _, b := range []byte(value) {
		if b < ' ' || b > '~' || strings.IndexByte("=+-@", b) >= 0 {
			return false
		}
	}
	return true
}

// beginsFormula reports whether the first character that is not skipped is a formula sign.
func beginsFormula(part string) bool {
	for _, r := range part {
		if !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf) && r != '"' && r != utf8.RuneError {
			return strings.ContainsRune(formulaSigns, r)
		}
	}
	return false
}

// isControl reports whether a character affects the text around it. Tabs and line ends are kept, and so are the
// joiners that scripts and emoji need.
func isControl(r rune) bool {
	switch r {
	case '\t', '\r', '\n', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}
