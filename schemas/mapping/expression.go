package mapping

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"go.yaml.in/yaml/v3"
)

// number computes a number from a log, in two's complement. ok is false if the log has a number that cannot be counted.
type number func(l *Log) (v Amount, ok bool)

type value struct {
	typ valueType
	// parameter is set if the expression is a parameter, constant if it is a literal.
	parameter *parameter
	constant  *common.Hash
	// reads is set if the expression has a parameter.
	reads bool
	// number computes the value of a numeric expression, otherwise nil. Its magnitude has at most typ.bits bits, and it
	// may be negative if typ.base is baseInt.
	number number
}

func (v *value) numeric() bool { return v.typ.base == baseUint || v.typ.base == baseInt }

// numberBits is the length of the longest computed number: the highest bit is the sign.
const numberBits = 255

type expressions struct {
	*checker
	node *yaml.Node
	of   *signature
}

// expression parses a scalar. It reports a mistake and returns false if the text is not an expression. After too many
// mistakes it parses nothing.
func (c *checker) expression(n *yaml.Node, of *signature) (value, bool) {
	if c.found > maxMistakes {
		return value{}, false
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		c.at(n, 0, "an expression must be one value, such as $assets, place or add($a, $b)")
		return value{}, false
	}
	e := expressions{c, n, of}
	return e.parse(piece{0, len(n.Value)}, 0)
}

func (e *expressions) wrong(at int, format string, a ...any) (value, bool) {
	e.at(e.node, at, format, a...)
	return value{}, false
}

func (e *expressions) parse(p piece, depth int) (value, bool) {
	text := e.node.Value[p.from:p.to]
	switch {
	case depth > maxDepth:
		return e.wrong(p.from, "an expression is nested more than %d times", maxDepth)
	case text == placeName:
		return counted(placeName, func(l *Log) uint64 { return l.Place }), true
	case text == "true", text == "false":
		word := common.Hash{}
		if text == "true" {
			word[31] = 1
		}
		return value{typ: valueType{baseBool, 1, "bool"}, constant: &word}, true
	case strings.HasPrefix(text, "$"):
		return e.parameter(p.from, text[1:])
	case text != "" && text[0] >= '0' && text[0] <= '9':
		return e.literal(p.from, text)
	}
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return e.wrong(p.from,
			"%q is not an expression: write $parameter, $block, $time, place, a number, or add, sub or mulDiv", text)
	}
	if !strings.HasSuffix(text, ")") {
		return e.wrong(p.from,
			"%q has no closing bracket; inside { } an expression with a comma must be in quotes", text)
	}
	name := text[:open]
	want, ok := map[string]int{"add": 2, "sub": 2, "mulDiv": 3}[name]
	if !ok {
		return e.wrong(p.from, "unknown function `%s`: there are add, sub and mulDiv", name)
	}
	pieces, at, err := split(e.node.Value, p.from+open+1, p.to-1)
	if err != nil {
		return e.wrong(at, "%v", err)
	}
	if len(pieces) != want {
		return e.wrong(p.from, "`%s` takes %d arguments and has %d", name, want, len(pieces))
	}
	arguments, reads := make([]value, want), false
	for i, p := range pieces {
		v, ok := e.parse(p, depth+1)
		if !ok {
			return value{}, false
		}
		if !v.numeric() {
			return e.wrong(p.from, "`%s` calculates with numbers, and %q is of the type %s",
				name, e.node.Value[p.from:p.to], v.typ.text)
		}
		arguments[i], reads = operand(v), reads || v.reads
	}
	var out value
	switch a, b := arguments[0], arguments[1]; name {
	case "add":
		out, ok = e.sum(p.from, text, a, b, (*Amount).Add, a.typ.base == baseInt || b.typ.base == baseInt)
	case "sub":
		out, ok = e.sum(p.from, text, a, b, (*Amount).Sub, true)
	default:
		if c := arguments[2]; c.constant != nil && *c.constant == (common.Hash{}) {
			return e.wrong(p.from, "%q divides by zero", text)
		}
		out = mulDiv(a, b, arguments[2])
	}
	out.reads = reads
	return out, ok
}

func (e *expressions) parameter(at int, name string) (value, bool) {
	var found *parameter
	var names []string
	for i := range e.of.parameters {
		if p := &e.of.parameters[i]; p.name != "" {
			if p.name == name && found != nil {
				return e.wrong(at, "the struct of `$%s` has two members with this name", name)
			} else if p.name == name {
				found = p
			}
			names = append(names, "$"+p.name)
		}
	}
	if name == "block" || name == "time" {
		if found != nil {
			return e.wrong(at, "`$%s` can be the block's or the event's: give the parameter another name in `on`", name)
		}
		if name == "block" {
			return counted("$block", func(l *Log) uint64 { return l.Block() }), true
		}
		return counted("$time", func(l *Log) uint64 { return l.Time }), true
	}
	if found == nil {
		if of, _, member := strings.Cut(name, "."); member &&
			!slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "$"+of+".") }) {
			return e.wrong(at, "`$%s` cannot be read: that needs a parameter `%s` with a struct of named members, not indexed, "+
				"no list, and without strings, bytes and lists of any length", name, of)
		}
		if names == nil {
			return e.wrong(at, "unknown parameter `$%s`: %s has no parameter with a name", name, e.of.Name)
		}
		return e.wrong(at, "unknown parameter `$%s`: %s has %s", name, e.of.Name, series(names, "and"))
	}
	if found.typ.base == baseOther {
		return e.wrong(at, "`$%s` is of the type %s, and only a value of one word can be used", name, found.typ.text)
	}
	found.unread = false
	v := value{typ: found.typ, parameter: found, reads: true}
	if v.numeric() {
		v.number = read(found)
	}
	return v, true
}

// placeName is the expression for the place of a log, and its type in messages.
const placeName = "place"

// counted returns a 64-bit number that every log has.
func counted(text string, of func(*Log) uint64) value {
	return value{typ: valueType{baseUint, 64, text}, number: func(l *Log) (v Amount, ok bool) {
		v.SetUint64(of(l))
		return v, true
	}}
}

// literal parses a number, an address (20 bytes in hex) or a word (32 bytes in hex).
func (e *expressions) literal(at int, text string) (value, bool) {
	digits, isHex := strings.CutPrefix(text, "0x")
	if isHex && (len(digits) == 40 || len(digits) == 64) {
		b, err := hex.DecodeString(digits)
		if err != nil {
			return e.wrong(at, "%q is not a hexadecimal number", text)
		}
		word := common.BytesToHash(b)
		if len(digits) == 40 {
			return value{typ: valueType{baseAddress, 160, "address"}, constant: &word}, true
		}
		return value{typ: valueType{baseBytes, 256, "bytes32"}, constant: &word}, true
	}
	base := 10
	if isHex {
		base = 16
	}
	v, ok := new(big.Int).SetString(digits, base)
	if !ok || strings.ContainsAny(digits, "_+-") {
		return e.wrong(at, "%q is not a whole number; fractions and exponents are not supported", text)
	}
	if v.BitLen() > 256 {
		return e.wrong(at, "%q has more than 256 bits", text)
	}
	word := common.BigToHash(v)
	var constant Amount
	constant.SetFromBig(v)
	return value{typ: valueType{baseUint, v.BitLen(), "number"}, constant: &word,
		number: func(*Log) (Amount, bool) { return constant, true }}, true
}

func read(p *parameter) number {
	return func(l *Log) (v Amount, ok bool) {
		v.SetBytes32(p.word(l)[:])
		return v, true
	}
}

// operand limits a parameter that is used in a calculation to an amount: one that is too large cannot be counted.
func operand(v value) value {
	if v.parameter == nil || v.typ.bits <= amountBits {
		return v
	}
	inner, signed := v.number, v.typ.base == baseInt
	v.typ.bits = amountBits
	v.number = func(l *Log) (Amount, bool) {
		n, ok := inner(l)
		return n, ok && fits(&n, amountBits, signed)
	}
	return v
}

// fits reports whether the magnitude of a number has at most bits bits, and whether an unsigned number is not negative.
func fits(v *Amount, bits int, signed bool) bool {
	if !signed || v.Sign() >= 0 {
		return v.BitLen() <= bits
	}
	var magnitude uint256.Int
	return magnitude.Neg(v).BitLen() <= bits
}

// sum adds or subtracts. The checker limits the lengths of its arguments, so that no log can make it overflow.
func (e *expressions) sum(
	at int, text string, a, b value, do func(z, x, y *Amount) *Amount, signed bool,
) (value, bool) {
	bits := max(a.typ.bits, b.typ.bits) + 1
	if bits > numberBits {
		return e.wrong(at, "%q can overflow: its result can have %d bits, and %d are possible", text, bits, numberBits)
	}
	typ := valueType{baseUint, bits, "number"}
	if signed {
		typ.base = baseInt
	}
	return value{typ: typ, number: func(l *Log) (z Amount, ok bool) {
		x, ok := a.number(l)
		if !ok {
			return z, false
		}
		y, ok := b.number(l)
		if !ok {
			return z, false
		}
		return *do(&z, &x, &y), true
	}}, true
}

// mulDiv is a*b/c, rounded down, with a 512-bit product, so that only the result can be too large. The result cannot be
// counted if it is too large, if c is 0, or if an argument is negative.
func mulDiv(a, b, c value) value {
	return value{typ: valueType{baseUint, amountBits, "number"}, number: func(l *Log) (z Amount, ok bool) {
		var in [3]Amount
		for i, v := range [...]*value{&a, &b, &c} {
			if in[i], ok = v.number(l); !ok || v.typ.base == baseInt && in[i].Sign() < 0 {
				return z, false
			}
		}
		if in[2].IsZero() {
			return z, false
		}
		_, overflow := z.MulDivOverflow(&in[0], &in[1], &in[2])
		return z, !overflow && z.BitLen() <= amountBits
	}}
}

// comparable reports whether words of two types can be compared, so that equal words are equal values.
func comparable(a, b valueType) bool {
	return a.base == b.base && a.base != baseOther && (a.base != baseBytes || a.bits == b.bits)
}

// wordFor converts a literal to the word of a parameter's type. A hexadecimal literal with as many digits as a bytesN
// has is a bytesN.
func wordFor(v value, text string, t valueType) (common.Hash, error) {
	digits, isHex := strings.CutPrefix(text, "0x")
	switch {
	case t.base == baseBytes && isHex && len(digits)*4 == t.bits:
		b, err := hex.DecodeString(digits)
		if err != nil {
			return common.Hash{}, fmt.Errorf("%q is not a hexadecimal number", text)
		}
		var word common.Hash
		copy(word[:], b)
		return word, nil
	case t.base == baseInt && v.typ.base == baseUint && v.typ.bits < t.bits,
		v.typ.base == t.base && t.base != baseBytes && v.typ.bits <= t.bits:
		return *v.constant, nil
	}
	if t.base == baseAddress {
		return common.Hash{}, fmt.Errorf("%q is not an address: write 0x and 40 digits", text)
	}
	return common.Hash{}, fmt.Errorf("%q is not a value of type %s", text, t.text)
}
