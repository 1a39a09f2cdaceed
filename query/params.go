package query

import (
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Limits of lists.
const (
	defaultPageSize = 20
	maxPageSize     = 100
	maxReach        = 100_000 // page x pageSize
)

// params reads the parameters of one request and collects what is wrong with
// them, so that a client learns of all its mistakes at once. Unknown
// parameters are ignored, a repeated one counts where it is first, an empty
// one is absent.
type params struct {
	values     url.Values
	known      map[string]string // of those that the route has: as the client wrote them
	faults     []fault
	badAddress bool
}

func newParams(rawQuery string) *params {
	values, err := url.ParseQuery(rawQuery)
	p := &params{values: values, known: make(map[string]string)}
	if err != nil {
		p.fault("query", "must be name=value pairs joined by & and percent-encoded")
	}
	return p
}

// get reads a parameter, which from then on is one that the route knows.
func (p *params) get(field string) string {
	value := p.values.Get(field)
	if value != "" {
		p.known[field] = value
	}
	return value
}

// err is nil when everything read so far is valid.
func (p *params) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	f := invalidParameter(p.faults...)
	if p.badAddress {
		f.code, f.message = codeInvalidAddress, "An address is not valid."
	}
	return f
}

func (p *params) fault(field, reason string) {
	p.faults = append(p.faults, fault{field, reason})
}

// address checks the address that the client gave as field: 0x and 40 hex
// digits in any case, the checksum is not enforced.
func (p *params) address(field, value string) common.Address {
	if !isAddress(value) {
		p.badAddress = true
		p.fault(field, "must be 0x and 40 hexadecimal digits")
	}
	return common.HexToAddress(value)
}

// vault is the filter vault; nil when absent.
func (p *params) vault() *common.Address {
	value := p.get("vault")
	if value == "" {
		return nil
	}
	address := p.address("vault", value)
	return &address
}

// page is a part of a list: the number-th (from 1) of size entries.
type page struct{ number, size int }

func (p page) offset() uint64 { return uint64(p.number-1) * uint64(p.size) }

// readAhead is up to how many rows of a list are read from its beginning for a
// page, to leave out here what is before it: how many there are stands in the
// rows, and a page past the end has none.
const readAhead = 1000

// reach is how many rows to read for a page, from where, and how many of them to
// leave out.
func (p page) reach() (limit, offset uint64, skip int) {
	if end := p.offset() + uint64(p.size); end <= readAhead {
		return end, 0, int(p.offset())
	}
	return uint64(p.size), p.offset(), 0
}

func (p *params) page() page {
	number := p.integer("page", 1, 1, math.MaxUint64, "must be an integer of at least 1")
	size := p.integer("pageSize", defaultPageSize, 1, maxPageSize, "must be an integer from 1 to 100")
	if number > maxReach/size {
		p.fault("page", "page x pageSize must not be above 100000; narrow the list by its filters")
		number = 1
	}
	return page{int(number), int(size)}
}

// integer reads a whole number from lowest to highest.
func (p *params) integer(field string, absent, lowest, highest uint64, reason string) uint64 {
	value := p.get(field)
	if value == "" {
		return absent
	}
	n, ok := digits(value)
	if !ok || n < lowest || n > highest {
		p.fault(field, reason)
		return absent
	}
	return n
}

// digits reads a number that is nothing but decimal digits. Numbers above
// 2^64-1 read as that.
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

// oneOf reads a parameter with fixed values.
func (p *params) oneOf(field, absent string, allowed ...string) string {
	value := p.get(field)
	if value == "" {
		return absent
	}
	for _, a := range allowed {
		if value == a {
			return value
		}
	}
	p.fault(field, "must be one of "+strings.Join(allowed, ", "))
	return absent
}

// span bounds block times in Unix seconds, both ends included.
type span struct{ from, to int64 }

func (p *params) span() span {
	out := span{0, math.MaxInt64}
	from, fromGiven := p.instant("from", false)
	to, toGiven := p.instant("to", true)
	if fromGiven && toGiven && from.After(to) {
		p.fault("from", "must not be after to")
	}
	if fromGiven {
		out.from = from.Unix()
		if from.Nanosecond() > 0 { // block times are whole seconds: the first one not before from
			out.from++
		}
	}
	if toGiven {
		out.to = to.Unix()
	}
	return out
}

// rfc3339 is the form of RFC 3339, down to nanoseconds; time.Parse alone takes
// a one-digit hour and a comma too.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// instant reads RFC 3339, YYYY-MM-DD (UTC), Unix seconds or Unix milliseconds.
// A date alone is the start of its day, or with endOfDay its last nanosecond.
func (p *params) instant(field string, endOfDay bool) (time.Time, bool) {
	value := p.get(field)
	if value == "" {
		return time.Time{}, false
	}
	if n, ok := digits(value); ok && len(value) <= 10 {
		return time.Unix(int64(n), 0), true
	} else if ok && len(value) == 13 {
		return time.UnixMilli(int64(n)), true
	}
	if day, err := time.Parse(time.DateOnly, value); err == nil {
		if endOfDay {
			day = day.AddDate(0, 0, 1).Add(-time.Nanosecond)
		}
		return day, true
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil && rfc3339.MatchString(value) {
		return t, true
	}
	p.fault(field, "must be RFC 3339, YYYY-MM-DD, Unix seconds (up to 10 digits) or Unix milliseconds (13 digits)")
	return time.Time{}, false
}

// height reads asOfBlock or asOfSeq: a number from lowest to highest, which
// are named in the reason; nil when absent.
func (p *params) height(field string, lowest, highest uint64, reason string) *uint64 {
	value := p.get(field)
	if value == "" {
		return nil
	}
	n, ok := digits(value)
	if !ok || n < lowest || n > highest {
		p.fault(field, reason)
		return nil
	}
	return &n
}

// pathAddress is the address in the path, which may be percent-encoded.
func (p *params) pathAddress(vars map[string]string) common.Address {
	value, err := url.PathUnescape(vars["address"])
	if err != nil {
		value = ""
	}
	return p.address("address", value)
}

// wantsJSON tells whether a request says that its body is plain JSON.
func wantsJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	encoding := h.Get("Content-Encoding")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json") && (encoding == "" || strings.EqualFold(encoding, "identity"))
}
