package events

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/navlog/navlog/query/httpapi"
)

// place is where in the list a page ends: the next one begins before it.
type place struct {
	block, index uint64
	// seq tells logs at one place of the chain apart; 0 in a list of live ones, of which
	// there is one.
	seq uint64
}

// newest is before every log.
var newest = place{block: math.MaxUint64}

// before reads the parameter by which a client asks for the next page. Where only live logs
// are listed, a place with a seq would leave out the record that took the log there back.
func before(params *httpapi.Params, retracted bool) place {
	value := params.Place("before")
	if value == "" {
		return newest
	}
	at, ok := parsePlace(value)
	if !ok || at.seq != 0 && !retracted {
		params.Fault("before", "must be the meta.next of an earlier answer")
		return newest
	}
	return at
}

// String writes a place as a client gives it back.
func (p place) String() string {
	var b []byte
	for _, n := range []uint64{p.block, p.index, p.seq} {
		b = binary.AppendUvarint(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePlace reads what String wrote, and nothing else.
func parsePlace(s string) (p place, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	for _, n := range []*uint64{&p.block, &p.index, &p.seq} {
		v, length := binary.Uvarint(b)
		if length <= 0 {
			return p, false
		}
		*n, b = v, b[length:]
	}
	return p, p.String() == s
}
