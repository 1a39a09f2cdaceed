package serve

import (
	"encoding/hex"
	"errors"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// Limits of lists.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
	maxReach        = 100_000 // page x pageSize
)

// Params parses the parameters of one request and collects all mistakes, so that a client learns of them at once.
// Unknown parameters are ignored, the first value of a repeated one counts, and an empty one is absent.
type Params struct {
	values     url.Values
	known      map[string]string // the parameters that the route knows, as the client wrote them
	faults     []Fault
	badAddress bool
	whole      int // number of rows read at once if the list is requested as a file; 0: it is not
}

func newParams(values url.Values) *Params {
	return &Params{values: values, known: make(map[string]string)}
}

// Get returns a parameter, and marks it as one that the route knows.
func (p *Params) Get(field string) string {
	value := p.values.Get(field)
	if value != "" {
		p.known[field] = value
	}
	return value
}

// Err returns nil if all parameters read so far are valid.
func (p *Params) Err() error {
	if len(p.faults) == 0 {
		return nil
	}
	f := InvalidParameter(p.faults...)
	if p.badAddress {
		f.Code, f.Message = CodeInvalidAddress, "An address is not valid."
	}
	return f
}

// Fault records a mistake in a field.
func (p *Params) Fault(field, reason string) {
	p.faults = append(p.faults, Fault{field, reason})
}

// Address parses an address that the client sent as field: 0x and 40 hex digits in any case; the checksum is not
// enforced.
func (p *Params) Address(field, value string) common.Address {
	if !IsAddress(value) {
		p.badAddress = true
		p.Fault(field, "must be 0x and 40 hexadecimal digits")
	}
	return common.HexToAddress(value)
}

// Filter returns an address that a list is filtered by, or nil if absent.
func (p *Params) Filter(field string) *common.Address {
	value := p.Get(field)
	if value == "" {
		return nil
	}
	address := p.Address(field, value)
	return &address
}

// Hash parses a hash, 0x and 64 hex digits in any case, or returns nil if absent.
func (p *Params) Hash(field string) *common.Hash {
	value := p.Get(field)
	if value == "" {
		return nil
	}
	b, err := hex.DecodeString(strings.TrimPrefix(value, "0x"))
	if err != nil || len(value) != 2+2*common.HashLength || len(b) != common.HashLength {
		p.Fault(field, "must be 0x and 64 hexadecimal digits")
		return nil
	}
	hash := common.Hash(b)
	return &hash
}

// Page is a part of a list: page Number, from 1, of pages of Size entries.
type Page struct{ Number, Size int }

// Offset returns the number of entries before the page.
func (p Page) Offset() uint64 { return uint64(p.Number-1) * uint64(p.Size) }

// Page parses page and pageSize.
func (p *Params) Page() Page {
	if p.Place("page"); p.whole > 0 {
		return Page{1, p.PageSize()}
	}
	number := p.Integer("page", 1, 1, math.MaxUint64, "must be an integer of at least 1")
	size := uint64(p.PageSize())
	if number > maxReach/size {
		p.Fault("page", "page x pageSize must not be above 100000; narrow the list with its filters")
		number = 1
	}
	return Page{int(number), int(size)}
}

// Place returns a parameter that selects a part of a list. It is invalid for a file, which has the whole list.
func (p *Params) Place(field string) string {
	value := p.Get(field)
	if p.whole > 0 && value != "" {
		p.Fault(field, "must be left out: a file has the whole list")
		return ""
	}
	return value
}

// PageSize parses only pageSize, for a list whose pages have no numbers; for a file, it returns how many rows are
// read at once.
func (p *Params) PageSize() int {
	if p.Place("pageSize"); p.whole > 0 {
		return p.whole
	}
	return int(p.Integer("pageSize", DefaultPageSize, 1, MaxPageSize, "must be an integer from 1 to 100"))
}

// Integer parses a whole number from lowest to highest.
func (p *Params) Integer(field string, absent, lowest, highest uint64, reason string) uint64 {
	value := p.Get(field)
	if value == "" {
		return absent
	}
	n, ok := digits(value)
	if !ok || n < lowest || n > highest {
		p.Fault(field, reason)
		return absent
	}
	return n
}

// digits parses a number made only of decimal digits. Larger numbers become 2^64-1.
func digits(s string) (uint64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return math.MaxUint64, true
	}
	return n, true
}

// OneOf returns a parameter with fixed values.
func (p *Params) OneOf(field, absent string, allowed ...string) string {
	value := p.Get(field)
	if value == "" {
		return absent
	}
	if slices.Contains(allowed, value) {
		return value
	}
	p.Fault(field, "must be one of "+strings.Join(allowed, ", "))
	return absent
}

// Span is a range of block times in Unix seconds, both ends included.
type Span struct{ From, To int64 }

// Span parses from and to.
func (p *Params) Span() Span {
	out := Span{0, math.MaxInt64}
	from, to := p.Times()
	if from != nil {
		out.From = from.Unix()
		if from.Nanosecond() > 0 { // block times are whole seconds: the first one at or after from
			out.From++
		}
	}
	if to != nil {
		out.To = to.Unix()
	}
	return out
}

// Times parses from and to, to the nanosecond; nil if absent.
func (p *Params) Times() (from, to *time.Time) {
	from, to = p.instant("from", false), p.instant("to", true)
	if from != nil && to != nil && from.After(*to) {
		p.Fault("from", "must not be after to")
	}
	return from, to
}

// Moment parses a time and returns it in Unix seconds; a date without a time means the end of that day. given is
// false if absent.
func (p *Params) Moment(field string) (seconds int64, given bool) {
	at := p.instant(field, true)
	if at == nil {
		return 0, false
	}
	return at.Unix(), true
}

// rfc3339 is the syntax of RFC 3339, down to nanoseconds; time.Parse also accepts a one-digit hour and a comma.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// instant parses RFC 3339, YYYY-MM-DD (UTC), Unix seconds or Unix milliseconds; nil if absent or invalid. A date
// without a time means the start of that day or, with endOfDay, its last nanosecond.
func (p *Params) instant(field string, endOfDay bool) *time.Time {
	value := p.Get(field)
	if value == "" {
		return nil
	}
	number, ok := digits(value)
	at, err := time.Parse(time.DateOnly, value)
	switch {
	case ok && len(value) <= 10:
		at = time.Unix(int64(number), 0)
	case ok && len(value) == 13:
		at = time.UnixMilli(int64(number))
	case err == nil && endOfDay:
		at = at.AddDate(0, 0, 1).Add(-time.Nanosecond)
	case err == nil:
	default:
		at, err = time.Parse(time.RFC3339, value)
		if err != nil || !rfc3339.MatchString(value) {
			p.Fault(field, "must be RFC 3339, YYYY-MM-DD, Unix seconds (up to 10 digits) or Unix milliseconds (13 digits)")
			return nil
		}
		if year := at.UTC().Year(); year < 0 || year > 9999 { // dates and times of responses have four digits
			p.Fault(field, "must be in the years 0000 to 9999 of UTC")
			return nil
		}
	}
	return &at
}

// asOfBlock is the parameter that requests the state at a past block.
const asOfBlock = "asOfBlock"

// asOfBlock parses the parameter, which must be a block that can be answered about at a snapshot; nil if either is
// absent.
func (p *Params) asOfBlock(s *state.Snapshot) *uint64 {
	value := p.Get(asOfBlock)
	if value == "" || s == nil {
		return nil
	}
	n, ok := digits(value)
	if !ok {
		p.Fault(asOfBlock, ask.Range(s))
		return nil
	}
	_, err := ask.At(s, &n)
	if outside, ok := errors.AsType[*ask.RangeError](err); ok {
		p.Fault(asOfBlock, outside.Reason)
	}
	return &n
}

// IsAddress reports whether s is 0x and 40 hex digits, in any case.
func IsAddress(s string) bool { return strings.HasPrefix(s, "0x") && common.IsHexAddress(s) }
