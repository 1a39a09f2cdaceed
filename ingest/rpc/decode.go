package rpc

import (
	"bytes"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// maxTopics is how many topics the EVM lets a log have.
const maxTopics = 4

// noTime stands for the block time of a log whose node does not give it.
const noTime = math.MaxUint64

// answer is what a node says about eth_getLogs.
type answer struct {
	logs  []*event.Log
	bytes int // that it took on the wire
}

// decodeLogs reads the result of eth_getLogs as the node wrote it. Members may
// come in any order and unknown ones are passed over; what is needed must be
// there and well-formed. The logs keep nothing of the result. Their memory is
// taken in slabs: half a million small allocations a second are the largest
// part of what a generic decoder costs.
func decodeLogs(result []byte) (*answer, error) {
	d := decoder{scanner: scanner{b: result}}
	a := &answer{bytes: len(result)}
	if n := len(result) / typicalLog; n > 0 {
		a.logs = make([]*event.Log, 0, n)
	}
	err := d.members('[', ']', func() error {
		l, err := d.log()
		if err != nil {
			return fmt.Errorf("log %d: %w", len(a.logs), err)
		}
		a.logs = append(a.logs, l)
		return nil
	})
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, fmt.Errorf("the logs cannot be read: %w", err)
	}
	return a, nil
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

// Members that a log must have.
const (
	hasAddress = 1 << iota
	hasTopics
	hasData
	hasNumber
	hasBlockHash
	hasTxHash
	hasTxIndex
	hasIndex
	hasAll = 1<<iota - 1
)

var memberNames = [...]string{"address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex"}

func (d *decoder) log() (*event.Log, error) {
	if len(d.logs) == 0 {
		d.logs = make([]event.Log, slabLogs)
	}
	l := &d.logs[0]
	d.logs = d.logs[1:]
	l.BlockTime = noTime
	var has int
	var removed bool
	err := d.members('{', '}', func() error {
		name, err := d.name()
		if err != nil {
			return err
		}
		bit, err := d.member(l, name, &removed)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		has |= bit
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, name := range memberNames {
		if has&(1<<i) == 0 {
			return nil, fmt.Errorf("it has no %s", name)
		}
	}
	if removed {
		return nil, fmt.Errorf("it is a removed log (block %d, log %d)", l.BlockNumber, l.LogIndex)
	}
	return l, nil
}

// member takes the value of one member and says which one it was.
func (d *decoder) member(l *event.Log, name []byte, removed *bool) (bit int, err error) {
	switch string(name) {
	case "address":
		l.Address, err = d.again(&d.address, common.AddressLength)
		return hasAddress, err
	case "topics":
		l.Topics, err = d.topicList()
		return hasTopics, err
	case "data":
		l.Data, err = d.data()
		return hasData, err
	case "blockNumber":
		l.BlockNumber, err = d.quantity()
		return hasNumber, err
	case "blockHash":
		l.BlockHash, err = d.again(&d.blockHash, common.HashLength)
		return hasBlockHash, err
	case "blockTimestamp": // not every node gives it, and some give a zero
		if l.BlockTime = noTime; d.null() {
			return 0, nil
		}
		if l.BlockTime, err = d.quantity(); l.BlockTime == 0 {
			l.BlockTime = noTime
		}
		return 0, err
	case "transactionHash":
		l.TxHash, err = d.again(&d.txHash, common.HashLength)
		return hasTxHash, err
	case "transactionIndex":
		l.TxIndex, err = d.index()
		return hasTxIndex, err
	case "logIndex":
		l.LogIndex, err = d.index()
		return hasIndex, err
	case "removed":
		if d.null() {
			return 0, nil
		}
		*removed, err = d.flag()
		return 0, err
	}
	return 0, d.skip()
}

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

func (d *decoder) topicList() ([][]byte, error) {
	if len(d.topics) < maxTopics {
		d.topics = make([][]byte, slabTopics)
	}
	n := 0
	err := d.members('[', ']', func() error {
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

func (d *decoder) data() ([]byte, error) {
	text, err := d.text()
	if err != nil || len(text) == 0 {
		return nil, err
	}
	hex, err := digits(text)
	if err != nil {
		return nil, err
	}
	if len(hex)%2 != 0 {
		return nil, fmt.Errorf("it has an odd number of digits, %d", len(hex))
	}
	data := d.room(len(hex) / 2)
	return data, unhex(data, hex)
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

// decodeHeader reads the result of eth_getBlockBy…; nil for null.
func decodeHeader(result []byte) (*Header, error) {
	s := scanner{b: result}
	h := new(Header)
	if s.null() {
		return nil, s.end()
	}
	var number, hash, bloom bool
	err := s.members('{', '}', func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		switch string(name) {
		case "number":
			number = true
			h.Number, err = s.quantity()
		case "hash":
			hash = true
			err = s.fixed(h.Hash[:])
		case "parentHash":
			err = s.fixed(h.Parent[:])
		case "timestamp":
			h.Time, err = s.quantity()
		case "logsBloom":
			bloom = true
			err = s.fixed(h.Bloom[:])
		default:
			err = s.skip()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the block cannot be read: %w", err)
	case !number || !hash || !bloom:
		return nil, fmt.Errorf("the answer has no number, hash or logsBloom")
	}
	return h, nil
}

// decodeReceipts reads the logs out of the result of eth_getBlockReceipts.
func decodeReceipts(result []byte) (logs []*event.Log, err error) {
	d := decoder{scanner: scanner{b: result}}
	one := func() error {
		l, err := d.log()
		if err != nil {
			return fmt.Errorf("log %d: %w", len(logs), err)
		}
		logs = append(logs, l)
		return nil
	}
	receipt := func() error {
		has := false
		err := d.members('{', '}', func() error {
			name, err := d.name()
			if err != nil {
				return err
			}
			if string(name) != "logs" {
				return d.skip()
			}
			has = true
			return d.members('[', ']', one)
		})
		if err == nil && !has {
			err = fmt.Errorf("a receipt has no logs")
		}
		return err
	}
	if err = d.members('[', ']', receipt); err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, fmt.Errorf("the receipts cannot be read: %w", err)
	}
	return logs, nil
}
