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
	s := scanner{b: body}
	e, err := s.envelope()
	if err == nil {
		err = s.end()
	}
	return e, err
}

// openBatch finds the parts of the answers in the body of a batch. A node that
// refuses the whole batch gives a single answer.
func openBatch(body []byte) ([]envelope, error) {
	s := scanner{b: body}
	if s.peek() != '[' {
		one, err := openEnvelope(body)
		return []envelope{one}, err
	}
	var all []envelope
	err := s.members('[', ']', func() error {
		e, err := s.envelope()
		all = append(all, e)
		return err
	})
	if err == nil {
		err = s.end()
	}
	return all, err
}

// envelope takes the members of an answer.
func (s *scanner) envelope() (e envelope, err error) {
	if s.peek() != '{' {
		if err = s.skip(); err == nil {
			err = errForeign
		}
		return e, err
	}
	err = s.members('{', '}', func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		value, err := s.value()
		if err != nil {
			return err
		}
		switch string(name) {
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
