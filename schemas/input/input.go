// Package input cleans values that people type or paste: URLs, addresses, keys, dates, numbers
// and names. White space at the ends of a value is never intended, so it is removed. An
// invisible character is never intended either, and hard to find, so a value that contains one
// is rejected. No value is changed silently in any other way.
package input

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

// Text returns a value without leading and trailing white space. Its error completes "the value ...".
func Text(value string) (string, error) {
	text := strings.TrimFunc(value, unicode.IsSpace)
	place := 0
	for i, r := range text {
		place++
		switch {
		case strconv.IsPrint(r) && (r != unicode.ReplacementChar || strings.HasPrefix(text[i:], "\ufffd")):
		case r == unicode.ReplacementChar:
			return "", fmt.Errorf("is not UTF-8 from its character %d on: type it again", place)
		default:
			return "", fmt.Errorf("has a character that cannot be seen, %U, as its character %d: type it again", r, place)
		}
	}
	return text, nil
}

// Word is Text for a value without inner white space, such as an address, a key or a URL.
func Word(value string) (string, error) {
	text, err := Text(value)
	if err == nil && strings.Contains(text, " ") {
		return "", errors.New("has white space in it: remove it")
	}
	return text, err
}

// Any is Word for URLs, and Text for everything else.
func Any(value string) (string, error) {
	if strings.Contains(value, "://") {
		return Word(value)
	}
	return Text(value)
}

// Address reports whether a value is host:port, where a client can connect to.
func Address(value string) bool {
	host, port, err := net.SplitHostPort(value)
	number, wrong := strconv.ParseUint(port, 10, 16)
	return err == nil && wrong == nil && host != "" && !strings.ContainsFunc(host, notOfHosts) && number > 0
}

// notOfHosts reports whether a character cannot occur in a host name or an IP address.
func notOfHosts(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("/@?#", r)
}

// Password returns a value unchanged, because its white space may be intended, but rejects control characters.
func Password(value string) (string, error) {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", errors.New("has a line break or another control character in it: remove it")
	}
	return value, nil
}
