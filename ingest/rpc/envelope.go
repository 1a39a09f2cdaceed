package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What can be wrong with the body of an answer. All of them are the node's
// fault, or that of something on the way to it.
var (
	errNotJSON   = errors.New("the answer is not JSON")
	errForeign   = errors.New("the answer is JSON but no JSON-RPC answer")
	errWrongID   = errors.New("the answer is to another question")
	errTruncated = errors.New("the answer ends in the middle")
	// errAnswerTooLong: less has to be asked for.
	errAnswerTooLong = errors.New("the answer is too long")
)

// envelope is the outside of one JSON-RPC answer. Its parts are the bytes of
// the body, unparsed: a result of many megabytes is only skipped over.
type envelope struct {
	id, result, fault []byte // nil where the member is missing
}

// openEnvelope finds the parts of the only answer in a body.
func openEnvelope(body []byte) (envelope, error) {
	s := skimmer{b: body}
	e, err := s.envelope()
	if err == nil {
		err = s.end()
	}
	return e, err
}

// openBatch finds the parts of the answers in the body of a batch. A node that
// refuses the whole batch gives a single answer.
func openBatch(body []byte) ([]envelope, error) {
	s := skimmer{b: body}
	if c, err := s.next(); err != nil || c != '[' {
		one, err := openEnvelope(body)
		return []envelope{one}, err
	}
	var all []envelope
	err := s.members(']', func() error {
		e, err := s.envelope()
		all = append(all, e)
		return err
	})
	if err == nil {
		err = s.end()
	}
	return all, err
}

// about gives the bytes of the result of an answer to the question id, or its
// error as an *rpcError.
func (e envelope) about(id []byte) ([]byte, error) {
	if e.fault != nil && !bytes.Equal(e.fault, null) {
		// An answer to a question that could not be read has the id null.
		if !bytes.Equal(e.id, id) && !bytes.Equal(e.id, null) && e.id != nil {
			return nil, fmt.Errorf("%w: id %.40q instead of %s", errWrongID, e.id, id)
		}
		return nil, faultOf(e.fault)
	}
	switch {
	case e.result == nil:
		return nil, fmt.Errorf("%w: it has neither result nor error", errForeign)
	case !bytes.Equal(e.id, id):
		return nil, fmt.Errorf("%w: id %.40q instead of %s", errWrongID, e.id, id)
	}
	return e.result, nil
}

var null = []byte("null")

// faultOf reads the member "error", which some put as a bare string.
func faultOf(raw []byte) error {
	fault := new(rpcError)
	if json.Unmarshal(raw, fault) == nil {
		return fault
	}
	if json.Unmarshal(raw, &fault.Message) == nil {
		return fault
	}
	return fmt.Errorf("%w: its error is %.200q", errForeign, raw)
}

// skimmer walks over JSON without building anything. It finds where values
// end; what is inside a value is checked by the one who parses it.
type skimmer struct {
	b  []byte
	at int
}

// envelope takes the members of an answer.
func (s *skimmer) envelope() (e envelope, err error) {
	c, err := s.next()
	if err != nil {
		return e, err
	}
	if c != '{' {
		_, err := s.value()
		if err == nil {
			err = errForeign
		}
		return e, err
	}
	err = s.members('}', func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		value, err := s.value()
		if err != nil {
			return err
		}
		switch name {
		case "id":
			e.id = value
		case "result":
			e.result = value
		case "error":
			e.fault = value
		}
		return nil
	})
	return e, err
}

// members calls one at the beginning of each member of the array or object that
// begins here, which must end with the bracket until.
func (s *skimmer) members(until byte, one func() error) error {
	s.at++ // the opening bracket
	if c, err := s.next(); err != nil {
		return err
	} else if c == until {
		s.at++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		c, err := s.next()
		if err != nil {
			return err
		}
		s.at++
		switch c {
		case until:
			return nil
		case ',':
		default:
			return s.unexpected(c)
		}
	}
}

// name takes the name of a member and the colon.
func (s *skimmer) name() (string, error) {
	c, err := s.next()
	if err != nil {
		return "", err
	}
	if c != '"' {
		return "", s.unexpected(c)
	}
	raw, err := s.value()
	if err != nil {
		return "", err
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return "", fmt.Errorf("%w: a member is named %.40q", errNotJSON, raw)
	}
	if c, err = s.next(); err != nil {
		return "", err
	}
	if c != ':' {
		return "", s.unexpected(c)
	}
	s.at++
	return name, nil
}

// value takes the value that begins here.
func (s *skimmer) value() ([]byte, error) {
	c, err := s.next()
	if err != nil {
		return nil, err
	}
	from := s.at
	switch c {
	case '{', '[':
		err = s.nested()
	case '"':
		err = s.text()
	case '}', ']', ',', ':':
		return nil, s.unexpected(c)
	default:
		if end := bytes.IndexAny(s.b[s.at:], ",]} \t\r\n"); end >= 0 {
			s.at += end
		} else {
			s.at = len(s.b)
		}
		if !json.Valid(s.b[from:s.at]) {
			return nil, s.notJSON(s.b[from:s.at])
		}
	}
	return s.b[from:s.at], err
}

// nested skips over an array or object.
func (s *skimmer) nested() error {
	for depth := 0; s.at < len(s.b); {
		switch s.b[s.at] {
		case '"':
			if err := s.text(); err != nil {
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

// text skips over a string.
func (s *skimmer) text() error {
	for i := s.at + 1; ; {
		quote := bytes.IndexByte(s.b[i:], '"')
		if quote < 0 {
			return errTruncated
		}
		i += quote + 1
		slashes := 0 // before the quote: an odd number escapes it
		for s.b[i-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			s.at = i
			return nil
		}
	}
}

// next looks at the next byte that is no white space.
func (s *skimmer) next() (byte, error) {
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c, nil
		}
	}
	return 0, errTruncated
}

// end checks that nothing follows.
func (s *skimmer) end() error {
	if c, err := s.next(); err == nil {
		return s.unexpected(c)
	}
	return nil
}

func (s *skimmer) unexpected(c byte) error {
	return fmt.Errorf("%w: %q at byte %d", errNotJSON, c, s.at)
}

// notJSON is for a word that is no JSON value; the beginning of one at the very
// end may be all that came of it.
func (s *skimmer) notJSON(word []byte) error {
	if s.at == len(s.b) {
		for _, whole := range []string{"null", "true", "false"} {
			if bytes.HasPrefix([]byte(whole), word) {
				return errTruncated
			}
		}
	}
	return fmt.Errorf("%w: it has %.40q", errNotJSON, word)
}
