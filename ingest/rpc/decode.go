package rpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// maxTopics is the maximum number of topics of an EVM log.
const maxTopics = 4

// noTime stands for the block time of a log whose node does not return it.
const noTime = math.MaxUint64

// answer is a decoded response to eth_getLogs.
type answer struct {
	logs  []*event.Log // in the order of the chain, without duplicates
	bytes int          // size of the response
	given int          // logs in the response except pending ones; duplicates and removed ones count
	// disordered is true if the logs came in another order, so that a truncated response may lack any of them.
	disordered bool
	// removed are logs that the node reports as no longer in a block of its chain.
	removed []*event.Log
}

// decodeLogs decodes the result of eth_getLogs. Members may come in any order and unknown ones are skipped; required
// ones must be present and well-formed. null is an empty list, as some nodes write it. The logs do not reference the
// result. Their memory is allocated in slabs: half a million small allocations a second are most of the cost of a
// generic decoder.
func decodeLogs(result []byte) (*answer, error) {
	d := decoder{scanner: scanner{b: result}}
	a := &answer{bytes: len(result)}
	if n := len(result) / typicalLog; n > 0 {
		a.logs = make([]*event.Log, 0, n)
	}
	var err error
	if !d.null() {
		err = d.list("a list of logs", func() error { return d.into(a) })
	}
	if err == nil {
		err = d.end()
	}
	if err == nil {
		err = a.order()
	}
	if err != nil {
		return nil, fmt.Errorf("the logs cannot be read: %w", err)
	}
	return a, nil
}

// into decodes a log and adds it to an answer.
func (d *decoder) into(a *answer) error {
	l, state, err := d.log(hasAll)
	if err != nil {
		return fmt.Errorf("log %d: %w", a.given, err)
	}
	switch state {
	case removed:
		a.given++
		a.removed = append(a.removed, l)
	case mined:
		a.given++
		if last := len(a.logs) - 1; last >= 0 && byPlace(a.logs[last], l) >= 0 {
			a.disordered = true
		}
		a.logs = append(a.logs, l)
	}
	return nil
}

// byPlace compares logs by their position in the chain.
func byPlace(a, b *event.Log) int {
	return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.LogIndex, b.LogIndex))
}

// order sorts the logs by their position in the chain and removes duplicates. Two different logs at one position are an
// error.
func (a *answer) order() error {
	if !a.disordered {
		return nil
	}
	slices.SortStableFunc(a.logs, byPlace)
	kept := a.logs[:1]
	for _, l := range a.logs[1:] {
		before := kept[len(kept)-1]
		switch {
		case byPlace(before, l) != 0:
			kept = append(kept, l)
		case !proto.Equal(before, l):
			return fmt.Errorf("logIndex: two different logs have number %d in block %d", l.LogIndex, l.BlockNumber)
		}
	}
	a.logs = kept
	return nil
}

// list reads an array and calls one for each element.
func (s *scanner) list(expected string, one func() error) error {
	if c := s.peek(); c != '[' && c != 0 {
		return s.otherThan(expected)
	}
	return s.members('[', ']', one)
}

// object reads an object and calls one for each member.
func (s *scanner) object(expected string, one func() error) error {
	if c := s.peek(); c != '{' && c != 0 {
		return s.otherThan(expected)
	}
	return s.members('{', '}', one)
}

// typicalLog is roughly the smallest size of a log in JSON, in bytes.
const typicalLog = 550

// Sizes of slabs.
const (
	slabLogs   = 128
	slabTopics = 512
	slabBytes  = 32 << 10
)

// decoder decodes logs into slabs. A field that repeats the text of the log before it is not decoded again.
type decoder struct {
	scanner
	logs   []event.Log
	topics [][]byte
	bytes  []byte

	address, blockHash, txHash repeated
}

// repeated is a field that often has the same value as in the log before.
type repeated struct {
	digits, value []byte
}

// Members of a log. Only its time and its transaction index may be missing: the header of the block has the time, and
// the index affects no decision.
const (
	hasAddress = 1 << iota
	hasTopics
	hasData
	hasNumber
	hasBlockHash
	hasTxHash
	hasIndex
	hasAll     = 1<<iota - 1
	hasTxIndex = 1 << (iota - 1)
	hasTime    = 1 << (iota - 1)
	hasRemoved = 1 << (iota - 1)
)

// memberNames are the names of the required members.
var memberNames = [...]string{"address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "logIndex"}

// place is the set of members that a mined log has and that are null in a pending one.
const place = hasNumber | hasBlockHash | hasTxHash | hasIndex | hasTxIndex

// logState is where a log is, according to the node.
type logState int

const (
	mined   logState = iota
	pending          // in no block yet
	removed          // no longer in a block of the node's chain
)

// log decodes a log that must have the given members.
func (d *decoder) log(must int) (*event.Log, logState, error) {
	if len(d.logs) == 0 {
		d.logs = make([]event.Log, slabLogs)
	}
	l := &d.logs[0]
	d.logs = d.logs[1:]
	l.BlockTime = noTime
	var has, nulls int
	gone := false
	err := d.object("a log", func() error {
		name, err := d.name()
		if err != nil {
			return err
		}
		bit := memberOf(name)
		switch {
		case bit == 0:
			return d.skip()
		case has&bit != 0:
			return d.twice(l, name, bit)
		case bit&(place|hasTime|hasRemoved) != 0 && d.null():
			nulls |= bit
		default:
			if err := d.member(l, bit, &gone); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		has |= bit
		return nil
	})
	switch {
	case err != nil:
		return nil, mined, err
	case gone:
		return l, removed, nil
	case nulls&(hasNumber|hasBlockHash) == hasNumber|hasBlockHash:
		return l, pending, nil
	}
	for i, name := range memberNames {
		switch bit := 1 << i; {
		case must&bit == 0:
		case has&bit == 0:
			return nil, mined, fmt.Errorf("it has no %s", name)
		case nulls&bit != 0:
			return nil, mined, fmt.Errorf("%s: it is null", name)
		}
	}
	return l, mined, nil
}

func memberOf(name []byte) int {
	switch string(name) {
	case "address":
		return hasAddress
	case "topics":
		return hasTopics
	case "data":
		return hasData
	case "blockNumber":
		return hasNumber
	case "blockHash":
		return hasBlockHash
	case "blockTimestamp":
		return hasTime
	case "transactionHash":
		return hasTxHash
	case "transactionIndex":
		return hasTxIndex
	case "logIndex":
		return hasIndex
	case "removed":
		return hasRemoved
	}
	return 0
}

// twice reads a member that occurred before, and must have the same value.
func (d *decoder) twice(l *event.Log, name []byte, bit int) error {
	again, gone := event.Log{BlockTime: noTime}, false
	if bit&(place|hasTime|hasRemoved) == 0 || !d.null() {
		if err := d.member(&again, bit, &gone); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	same := false
	switch bit {
	case hasAddress:
		same = bytes.Equal(again.Address, l.Address)
	case hasTopics:
		same = slices.EqualFunc(again.Topics, l.Topics, bytes.Equal)
	case hasData:
		same = bytes.Equal(again.Data, l.Data) && again.DataLength == l.DataLength && bytes.Equal(again.DataHash, l.DataHash)
	case hasNumber:
		same = again.BlockNumber == l.BlockNumber
	case hasBlockHash:
		same = bytes.Equal(again.BlockHash, l.BlockHash)
	case hasTime:
		same = again.BlockTime == l.BlockTime
	case hasTxHash:
		same = bytes.Equal(again.TxHash, l.TxHash)
	case hasTxIndex:
		same = again.TxIndex == l.TxIndex
	case hasIndex:
		same = again.LogIndex == l.LogIndex
	case hasRemoved:
		same = !gone // a removed log is not decoded further
	}
	if !same {
		return fmt.Errorf("%s: it is there twice, with two values", name)
	}
	return nil
}

// member decodes the value of one member.
func (d *decoder) member(l *event.Log, bit int, gone *bool) (err error) {
	switch bit {
	case hasAddress:
		l.Address, err = d.again(&d.address, common.AddressLength)
	case hasTopics:
		l.Topics, err = d.topicList()
	case hasData:
		err = d.data(l)
	case hasNumber:
		l.BlockNumber, err = d.quantity()
	case hasBlockHash:
		l.BlockHash, err = d.again(&d.blockHash, common.HashLength)
	case hasTime:
		l.BlockTime, err = d.time()
	case hasTxHash:
		l.TxHash, err = d.again(&d.txHash, common.HashLength)
	case hasTxIndex:
		l.TxIndex, err = d.index()
	case hasIndex:
		l.LogIndex, err = d.index()
	case hasRemoved:
		*gone, err = d.flag()
	}
	return err
}

// time decodes the time of a log, which is optional because the header of the block has it too. A zero, or anything
// that is not a number of seconds, counts as missing.
func (d *decoder) time() (uint64, error) {
	n, err := d.quantity()
	switch {
	case errors.Is(err, errTruncated), errors.Is(err, errNotJSON):
		return noTime, err
	case err != nil, n == 0, n > maxSeconds:
		return noTime, nil
	}
	return n, nil
}

// maxSeconds is in the year 36812. A larger value is in milliseconds, or not a time.
const maxSeconds = 1 << 40

// again decodes a value of fixed size, which is often the same as before.
func (d *decoder) again(before *repeated, size int) ([]byte, error) {
	digits, err := d.fixedDigits(size)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(digits, before.digits) {
		return before.value, nil
	}
	value := d.room(size)
	if err := unhex(value, digits); err != nil {
		return nil, err
	}
	*before = repeated{digits, value}
	return value, nil
}

// topicList decodes the topics. null is an empty list, as some nodes write it.
func (d *decoder) topicList() ([][]byte, error) {
	if d.null() {
		return nil, nil
	}
	if len(d.topics) < maxTopics {
		d.topics = make([][]byte, slabTopics)
	}
	n := 0
	err := d.list("a list of topics", func() error {
		if n == maxTopics {
			return fmt.Errorf("there are more than %d", maxTopics)
		}
		topic := d.room(common.HashLength)
		d.topics[n] = topic
		n++
		return d.fixed(topic)
	})
	topics := d.topics[:n:n]
	d.topics = d.topics[n:]
	return topics, err
}

// data decodes the data of a log.
func (d *decoder) data(l *event.Log) error {
	hex, err := d.hexBytes()
	if err != nil || len(hex) == 0 {
		return err
	}
	data := d.room(len(hex) / 2)
	err = unhex(data, hex)
	l.SetData(data)
	return err
}

// hexBytes reads any number of bytes and returns their hexadecimal digits. null, "" and "0x" are no bytes.
func (s *scanner) hexBytes() ([]byte, error) {
	if s.null() {
		return nil, nil
	}
	text, err := s.text()
	if err != nil {
		return nil, err
	}
	hex := digits(text)
	if len(hex)%2 != 0 {
		return nil, fmt.Errorf("it has an odd number of digits, %d", len(hex))
	}
	return hex, nil
}

// room allocates size bytes from a slab.
func (d *decoder) room(size int) []byte {
	if size > len(d.bytes) {
		if size > slabBytes/8 { // allocated separately: the rest of the slab is still useful
			return make([]byte, size)
		}
		d.bytes = make([]byte, slabBytes)
	}
	room := d.bytes[:size:size]
	d.bytes = d.bytes[size:]
	return room
}

// decodeHeader decodes the result of eth_getBlockBy…; it returns nil for null. Only block 0 may lack a parent and a
// time. A header without a bloom, as on some chains, has NoBloom set.
func decodeHeader(result []byte) (*Header, error) {
	s := scanner{b: result}
	h := new(Header)
	if s.null() {
		return nil, s.end()
	}
	const (
		number = iota
		hash
		parent
		timestamp
	)
	names := [...]string{"number", "hash", "parentHash", "timestamp"}
	var has [len(names)]bool
	h.NoBloom = true
	err := s.object("a block", func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		which := slices.Index(names[:], string(name))
		switch {
		case which >= 0 && s.null():
			return nil // treated as missing
		case string(name) == "logsBloom":
			err = s.bloom(h)
		case which == number:
			h.Number, err = s.quantity()
		case which == hash:
			err = s.fixed(h.Hash[:])
		case which == parent:
			err = s.fixed(h.Parent[:])
		case which == timestamp:
			h.Time, err = s.quantity()
		default:
			return s.skip()
		}
		if which >= 0 {
			has[which] = true
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	for i, name := range names {
		if err == nil && !has[i] && (i == number || i == hash || h.Number > 0) {
			err = fmt.Errorf("it has no %s", name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the block cannot be read: %w", err)
	}
	return h, nil
}

// bloom reads the bloom of a header. null, "" and "0x" mean that it has none.
func (s *scanner) bloom(h *Header) error {
	hex, err := s.hexBytes()
	switch {
	case err != nil:
		return err
	case len(hex) == 0:
		return nil
	case len(hex) != 2*len(h.Bloom):
		return fmt.Errorf("it has %d hexadecimal digits and must have %d", len(hex), 2*len(h.Bloom))
	}
	h.NoBloom = false
	return unhex(h.Bloom[:], hex)
}

// decodeReceipts decodes the logs in the result of eth_getBlockReceipts. It returns ErrNoReceipts for null.
func decodeReceipts(result []byte) (*answer, error) {
	d := decoder{scanner: scanner{b: result}}
	if d.null() {
		return nil, ErrNoReceipts
	}
	a := &answer{bytes: len(result)}
	err := d.list("a list of receipts", func() error { return d.receipt(func() error { return d.into(a) }) })
	if err == nil {
		err = d.end()
	}
	if err == nil {
		err = a.order()
	}
	if err != nil {
		return nil, fmt.Errorf("the receipts cannot be read: %w", err)
	}
	return a, nil
}

// receipt reads a receipt and calls one for each of its logs.
func (d *decoder) receipt(one func() error) error {
	has := false
	err := d.object("a receipt", func() error {
		name, err := d.name()
		if err != nil {
			return err
		}
		if string(name) != "logs" {
			return d.skip()
		}
		if has {
			return errors.New("logs: it is there twice")
		}
		has = true
		if d.null() { // an empty list
			return nil
		}
		return d.list("a list of logs", one)
	})
	if err == nil && !has {
		err = errors.New("a receipt has no logs")
	}
	return err
}

// decodeReceipt decodes the address, topics and data of the logs of one receipt. It returns no logs for null.
func decodeReceipt(result []byte) (logs []*event.Log, err error) {
	d := decoder{scanner: scanner{b: result}}
	if !d.null() {
		err = d.receipt(func() error {
			l, _, err := d.log(hasAddress | hasTopics | hasData)
			if err != nil {
				return fmt.Errorf("log %d: %w", len(logs), err)
			}
			logs = append(logs, &event.Log{Address: l.Address, Topics: l.Topics, Data: l.Data, DataLength: l.DataLength, DataHash: l.DataHash})
			return nil
		})
	}
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, fmt.Errorf("the receipt cannot be read: %w", err)
	}
	return logs, nil
}

// errNull is returned for a null result where null has no meaning.
var errNull = errors.New("the result is null")

// decodeQuantity decodes a numeric result.
func decodeQuantity(result []byte) (n uint64, err error) {
	s := scanner{b: result}
	if s.null() {
		return 0, errNull
	}
	if n, err = s.quantity(); err == nil {
		err = s.end()
	}
	return n, err
}

// decodeBytes decodes a result that is a byte string.
func decodeBytes(result []byte) ([]byte, error) {
	s := scanner{b: result}
	if s.peek() == 'n' {
		return nil, errNull
	}
	hex, err := s.hexBytes()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(hex)/2)
	return out, unhex(out, hex)
}
