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

// maxTopics is how many topics the EVM lets a log have.
const maxTopics = 4

// noTime stands for the block time of a log whose node does not give it.
const noTime = math.MaxUint64

// answer is what a node says about eth_getLogs.
type answer struct {
	logs  []*event.Log // in the order of the chain, each once
	bytes int          // that it took on the wire
	given int          // logs as they came but for pending ones: duplicates and removed ones count
	// disordered: they came in another order, so an answer that was cut may lack any of them.
	disordered bool
	// removed are logs of which the node says that they are in no block of its chain any more.
	removed []*event.Log
}

// decodeLogs reads the result of eth_getLogs as the node wrote it. Members may
// come in any order and unknown ones are passed over; what is needed must be
// there and well-formed. null, which is how some write an empty list, is one. The logs
// keep nothing of the result. Their memory is
// taken in slabs: half a million small allocations a second are the largest
// part of what a generic decoder costs.
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

// into reads a log into an answer.
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

// byPlace orders logs as the chain does.
func byPlace(a, b *event.Log) int {
	return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.LogIndex, b.LogIndex))
}

// order brings the logs into the order of the chain, and leaves out what is there twice. Two logs at one place are refused
// unless they are the same.
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

// list calls one at each element of the array that is next.
func (s *scanner) list(expected string, one func() error) error {
	if c := s.peek(); c != '[' && c != 0 {
		return s.otherThan(expected)
	}
	return s.members('[', ']', one)
}

// object calls one at each member of the object that is next.
func (s *scanner) object(expected string, one func() error) error {
	if c := s.peek(); c != '{' && c != 0 {
		return s.otherThan(expected)
	}
	return s.members('{', '}', one)
}

// typicalLog is about how many bytes of JSON a log has, at least.
const typicalLog = 550

// Sizes of slabs.
const (
	slabLogs   = 128
	slabTopics = 512
	slabBytes  = 32 << 10
)

// decoder reads logs into slabs. What a log has in common with the one before
// it, as it is written, is not decoded again.
type decoder struct {
	scanner
	logs   []event.Log
	topics [][]byte
	bytes  []byte

	address, blockHash, txHash repeated
}

// repeated is a field that often has the value that it had in the log before.
type repeated struct {
	digits, value []byte
}

// Members of a log. Only the time and the index of the transaction may be missing: the time is in the block's header, and
// the index decides nothing.
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

// memberNames are those of what a log must have.
var memberNames = [...]string{"address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "logIndex"}

// place is what a log has when it is in a block, and what is null in one that waits for one.
const place = hasNumber | hasBlockHash | hasTxHash | hasIndex | hasTxIndex

// logState is what a node says of where a log is.
type logState int

const (
	mined   logState = iota
	pending          // in no block yet
	removed          // in no block of the node's chain any more
)

// log reads a log that must have some of the members.
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

// twice reads a member that was there already, and must say the same.
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
		same = !gone // a log that was removed is not read on
	}
	if !same {
		return fmt.Errorf("%s: it is there twice, with two values", name)
	}
	return nil
}

// member takes the value of one member.
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

// time takes the time of a log, which not every node gives: the header of the block has it too. So a zero, and what is not
// a number of seconds, is none.
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

// maxSeconds is in the year 36812. A larger time is one in milliseconds, or none.
const maxSeconds = 1 << 40

// again takes a value of fixed size, which may be the one before.
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

// topicList takes the topics. null is how some write an empty list.
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

// data takes the data of a log.
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

// hexBytes takes bytes of any number and gives their digits. null, "" and "0x" are none.
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

// room gives so many bytes of a slab.
func (d *decoder) room(size int) []byte {
	if size > len(d.bytes) {
		if size > slabBytes/8 { // a slab of its own: the rest of this one is still good
			return make([]byte, size)
		}
		d.bytes = make([]byte, slabBytes)
	}
	room := d.bytes[:size:size]
	d.bytes = d.bytes[size:]
	return room
}

// decodeHeader reads the result of eth_getBlockBy…; nil for null. Only block 0 may lack a parent and a time. A header without
// a bloom, which some chains do not have, says so.
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
			return nil // as if it was missing
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

// bloom takes the bloom of a header. null, "" and "0x" are none.
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

// decodeReceipts reads the logs out of the result of eth_getBlockReceipts. null is ErrNoReceipts.
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

// receipt takes a receipt and calls one at each of its logs.
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

// decodeReceipt reads address, topics and data of the logs of one receipt; none of null.
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

// errNull is for a result that is null where null means nothing.
var errNull = errors.New("the result is null")

// decodeQuantity reads a result that is a number.
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

// decodeBytes reads a result that is bytes.
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
