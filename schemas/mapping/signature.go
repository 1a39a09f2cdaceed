package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// Event is an event of a mapping.
type Event struct {
	// Name is the Solidity name, Signature the text whose Keccak-256 hash is Topic.
	Name, Signature string
	Topic           common.Hash
}

// addEvent returns the event with a topic in a list, and adds it if it is new.
func addEvent(events *[]*Event, of Event) *Event {
	for _, e := range *events {
		if e.Topic == of.Topic {
			return e
		}
	}
	*events = append(*events, &of)
	return &of
}

// signature is a parsed event declaration.
type signature struct {
	Event
	parameters []parameter
	topics     int // the first topic and the indexed parameters
	words      int // in the data: the heads of all parameters that are not indexed
	dynamic    bool
}

// parameter is a parameter of an event, or a member of one that is a struct, and the position of its word.
type parameter struct {
	place
	name string
	typ  valueType
	// unread is set for a member that no expression reads: its word is not checked.
	unread bool
}

// valueType is the type of a word.
type valueType struct {
	base base
	bits int // for numbers
	// text is the Solidity type.
	text string
}

type base uint8

const (
	baseOther base = iota // a word that expressions cannot use
	baseUint
	baseInt
	baseAddress
	baseBool
	baseBytes
)

// Limits of a declaration. No actual contract comes near them; they keep a hostile file small.
const (
	maxParameters = 64
	maxWords      = 1024
	maxDepth      = 8
	maxName       = 256 // of a struct's member, in bytes
)

var (
	elementary = regexp.MustCompile(`^(address|bool|string|function|bytes([1-9]|[12][0-9]|3[0-2])?|u?int([0-9]{1,3})?)$`)
	identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)
	suffix     = regexp.MustCompile(`\[([0-9]{0,4})\]$`)
	blank      = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)|\s`)
	payable    = regexp.MustCompile(`\baddress +payable\b`)
)

// parseSignature parses "Name(type indexed name, ...)". The error is a sentence; at is the offset of the mistake.
func parseSignature(text string) (s *signature, at int, err error) {
	// A declaration may be copied with its lines and comments. Offsets stay the same.
	text = blank.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat(" ", len(found)) })
	text = payable.ReplaceAllStringFunc(text,
		func(found string) string { return fmt.Sprintf("%-*s", len(found), "address") })
	if strings.HasSuffix(strings.TrimRight(strings.ReplaceAll(text, ")", ") "), " ;"), " anonymous") {
		return nil, 0, errors.New("the first topic of an anonymous event does not name it, so no rule can read it")
	}
	body := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(text, " \t"), ";"), " \t")
	start := 0
	if rest, ok := strings.CutPrefix(strings.TrimLeft(body, " "), "event "); ok {
		start = len(body) - len(rest)
	}
	open := strings.IndexByte(body, '(')
	if open < 0 || !strings.HasSuffix(body, ")") {
		return nil, start, fmt.Errorf("%q is not an event signature: write Name(type indexed name, ...)", text)
	}
	name := strings.TrimSpace(body[start:open])
	if !identifier.MatchString(name) {
		return nil, start, fmt.Errorf("%q is not a valid event name", name)
	}
	pieces, at, err := split(body, open+1, len(body)-1)
	if err != nil {
		return nil, at, err
	}
	if len(pieces) > maxParameters {
		return nil, open + 1, fmt.Errorf("the event has %d parameters, at most %d are possible", len(pieces), maxParameters)
	}
	s = &signature{topics: 1}
	var arguments abi.Arguments
	seen := map[string]bool{}
	for _, p := range pieces {
		text := body[p.from:p.to]
		typeText, words := typeAndWords(text)
		parsed, err := parseType(typeText, 0)
		if err != nil {
			return nil, p.from, err
		}
		typ, err := abi.NewType(parsed.text, "", parsed.components)
		if err != nil {
			return nil, p.from, fmt.Errorf("%q is not a Solidity type", typeText)
		}
		indexed := len(words) > 0 && words[0] == "indexed"
		if indexed {
			words = words[1:]
		}
		if len(words) > 1 || len(words) == 1 && !identifier.MatchString(words[0]) {
			return nil, p.from, fmt.Errorf("%q is not a parameter: write `type name` or `type indexed name`", text)
		}
		param := parameter{typ: typeOf(typ)}
		if len(words) == 1 {
			param.name = words[0]
			if seen[param.name] {
				return nil, p.from, fmt.Errorf("the event has two parameters with the name `%s`", param.name)
			}
			seen[param.name] = true
		}
		if indexed {
			param.topic, param.at = true, s.topics
			if s.topics++; s.topics > maxTopics {
				return nil, p.from, fmt.Errorf(
					"the event has more than %d indexed parameters, and a log has no room for them", maxTopics-1)
			}
		} else {
			param.at = s.words
			s.words += parsed.words
			s.dynamic = s.dynamic || parsed.dynamic
		}
		if s.words > maxWords {
			return nil, p.from, fmt.Errorf("the event has more than %d words of data", maxWords)
		}
		s.parameters = append(s.parameters, param)
		if !indexed && !parsed.dynamic {
			s.members(param, &typ, parsed.members)
		}
		arguments = append(arguments, abi.Argument{Name: param.name, Type: typ, Indexed: indexed})
	}
	event := abi.NewEvent(name, name, false, arguments)
	s.Name, s.Signature, s.Topic = name, event.Sig, event.ID
	return s, 0, nil
}

// members adds the members of a struct. Without a value of dynamic length in it, their words are in the log as those of
// parameters would be.
func (s *signature) members(of parameter, typ *abi.Type, members []member) {
	at := of.at
	for i, m := range members {
		p := parameter{place: place{at: at}, typ: typeOf(*typ.TupleElems[i]), unread: true}
		if of.name != "" && m.name != "" && len(of.name)+len(m.name) < maxName {
			p.name = of.name + "." + m.name
		}
		s.parameters = append(s.parameters, p)
		s.members(p, typ.TupleElems[i], m.members)
		at += m.words
	}
}

// maxTopics is the maximum number of topics of a log on the EVM.
const maxTopics = 4

// piece is a part of a text, without surrounding spaces.
type piece struct{ from, to int }

// split splits text[from:to] at the commas outside of brackets. An empty text has no pieces.
func split(text string, from, to int) (out []piece, at int, err error) {
	depth, start := 0, from
	add := func(end int) error {
		p := piece{start, end}
		for p.from < p.to && (text[p.from] == ' ' || text[p.from] == '\t') {
			p.from++
		}
		for p.to > p.from && (text[p.to-1] == ' ' || text[p.to-1] == '\t') {
			p.to--
		}
		if p.from == p.to {
			return fmt.Errorf("there is nothing before the comma or bracket in %q", text)
		}
		out = append(out, p)
		return nil
	}
	if strings.TrimSpace(text[from:to]) == "" {
		return nil, 0, nil
	}
	for i := from; i < to; i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
			if depth < 0 {
				return nil, i, fmt.Errorf("a bracket is closed in %q that is not open", text)
			}
		case ',':
			if depth == 0 {
				if err := add(i); err != nil {
					return nil, start, err
				}
				start = i + 1
			}
		}
	}
	if depth != 0 {
		return nil, from, fmt.Errorf("a bracket is not closed in %q", text)
	}
	if err := add(to); err != nil {
		return nil, start, err
	}
	return out, 0, nil
}

// typeAndWords splits a parameter into its type and the words after it. The type of a tuple contains spaces.
func typeAndWords(text string) (string, []string) {
	end := 0
	if strings.HasPrefix(text, "(") || strings.HasPrefix(text, "tuple(") {
		depth := 0
		for i := range len(text) {
			switch text[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			end = i + 1
			if depth == 0 && text[i] == ')' {
				break
			}
		}
	}
	for end < len(text) && text[end] != ' ' && text[end] != '\t' {
		end++
	}
	return text[:end], strings.Fields(text[end:])
}

// shape is a parsed type in go-ethereum's notation, with the components of a tuple. members are the same if the type is
// the tuple itself and not a list of it. words is the number of words of its head, cells the number of values if every
// list has one element.
type shape struct {
	text       string
	components []abi.ArgumentMarshaling
	members    []member
	words      int
	cells      int
	dynamic    bool
}

// member is a member of a struct; its name is empty if the declaration has none.
type member struct {
	name string
	shape
}

func parseType(text string, depth int) (out shape, err error) {
	wrong := fmt.Errorf("%q is not a Solidity type", text)
	if depth > maxDepth {
		return out, fmt.Errorf("%q is nested more than %d times", text, maxDepth)
	}
	if m := suffix.FindStringSubmatch(text); m != nil {
		if out, err = parseType(strings.TrimSuffix(text, m[0]), depth+1); err != nil {
			return out, err
		}
		out.text, out.members = out.text+m[0], nil
		if m[1] == "" {
			out.words, out.dynamic = 1, true
			return out, nil
		}
		size, _ := strconv.Atoi(m[1])
		if size == 0 || size*out.cells > maxWords {
			return out, fmt.Errorf("%q has no values, or more than %d", text, maxWords)
		}
		out.cells *= size
		if !out.dynamic {
			out.words *= size
		}
		return out, nil
	}
	if inner, ok := strings.CutPrefix(strings.TrimPrefix(text, "tuple"), "("); ok {
		if !strings.HasSuffix(inner, ")") {
			return out, wrong
		}
		inner = strings.TrimSuffix(inner, ")")
		pieces, _, err := split(inner, 0, len(inner))
		if err != nil || len(pieces) == 0 || len(pieces) > maxParameters {
			return out, wrong
		}
		out.text = "tuple"
		for i, p := range pieces {
			component, words := typeAndWords(inner[p.from:p.to])
			part, err := parseType(component, depth+1)
			if err != nil {
				return out, err
			}
			name := ""
			if len(words) == 1 && identifier.MatchString(words[0]) {
				name = words[0]
			}
			out.members = append(out.members, member{name, part})
			out.components = append(out.components, abi.ArgumentMarshaling{
				Name: fmt.Sprintf("field%d", i), Type: part.text, Components: part.components})
			out.words, out.cells, out.dynamic = out.words+part.words, out.cells+part.cells, out.dynamic || part.dynamic
		}
		if out.cells > maxWords {
			return out, wrong
		}
		if out.dynamic {
			out.words = 1
		}
		return out, nil
	}
	if !elementary.MatchString(text) {
		if identifier.MatchString(strings.ReplaceAll(text, ".", "_")) {
			return out, fmt.Errorf("%w: write uint8 for an enum, address for a contract, (type, type) for a struct, "+
				"and for any other name the type that it stands for", wrong)
		}
		return out, wrong
	}
	if text == "uint" || text == "int" {
		text += "256" // as the compiler expands it before hashing
	}
	if i := strings.IndexAny(text, "0123456789"); i > 0 && strings.HasSuffix(text[:i], "int") {
		if bits, _ := strconv.Atoi(text[i:]); bits == 0 || bits > 256 || bits%8 != 0 || text[i] == '0' {
			return out, wrong
		}
	}
	return shape{text: text, words: 1, cells: 1, dynamic: text == "string" || text == "bytes"}, nil
}

func typeOf(t abi.Type) valueType {
	v := valueType{text: t.String()}
	switch t.T {
	case abi.UintTy:
		v.base, v.bits = baseUint, t.Size
	case abi.IntTy:
		v.base, v.bits = baseInt, t.Size
	case abi.AddressTy:
		v.base, v.bits = baseAddress, 160
	case abi.BoolTy:
		v.base, v.bits = baseBool, 1
	case abi.FixedBytesTy:
		v.base, v.bits = baseBytes, 8*t.Size
	}
	return v
}
