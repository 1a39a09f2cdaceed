package events

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/navlog/navlog/query/serve"
)

// place is the position at which a page ends: the next page begins before it.
type place struct {
	Block uint64 `ask:"before_block"`
	Index uint64 `ask:"before_index"`
	// Seq distinguishes logs at the same place of the chain; it is 0 in a list of live logs, which has at most one
	// there.
	Seq uint64 `ask:"before_seq"`
	// Sub distinguishes the effects of a log: a page may end between two of them.
	Sub uint8 `ask:"before_sub"`
}

// newest is the position before the newest log.
var newest = place{Block: math.MaxUint64}

// before parses the parameter that requests the next page. A place with a seq is only valid in a list with retracted
// logs: in a list of live logs it would exclude the record at that place.
func before(params *serve.Params, retracted bool) place {
	value := params.Place("before")
	if value == "" {
		return newest
	}
	at, ok := parsePlace(value)
	if !ok || at.Seq != 0 && !retracted {
		params.Fault("before", "must be the meta.next of an earlier response")
		return newest
	}
	return at
}

// String encodes a place for clients, the first effect of a log without its number.
func (p place) String() string {
	var b []byte
	for _, n := range []uint64{p.Block, p.Index, p.Seq} {
		b = binary.AppendUvarint(b, n)
	}
	if p.Sub > 0 {
		b = binary.AppendUvarint(b, uint64(p.Sub))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePlace parses the output of String, and nothing else.
func parsePlace(s string) (p place, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	for _, n := range []*uint64{&p.Block, &p.Index, &p.Seq} {
		v, length := binary.Uvarint(b)
		if length <= 0 {
			return p, false
		}
		*n, b = v, b[length:]
	}
	sub, _ := binary.Uvarint(b) // 0 if there is none
	p.Sub = uint8(sub)
	return p, p.String() == s
}
