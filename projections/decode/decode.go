package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Field numbers of event.proto, for chainlog.Fields.
const (
	varint = chainlog.Varint

	recordRetracts = varint | 2
	recordLog      = 8
	recordBlock    = 9
	recordVault    = 10
	recordDecision = 11
	recordSample   = 12

	logAddress = 1
	logTopics  = 2
	logData    = 3
	logBlock   = varint | 4
	logHash    = 5
	logTime    = varint | 6
	logTx      = 7
	logIndex   = varint | 9
	logNoData  = 11 // hash of data that the record does not contain
	logVault   = 12 // vault of the log, if another contract emitted it

	blockNumber = varint | 1
	blockHash   = 2
	blockTime   = varint | 4
)

// Decoder decodes the records of the log in order. It maps the logs of a vault by the first vault record for it, of
// those that it is created with and then of those that it reads. Only one goroutine may use it. It reuses memory across
// records: one slice for the effects of all, and the topics of the current log.
type Decoder struct {
	chainID  uint64
	vaults   *mapping.Vaults
	last     *mapping.Sources // sources of the last log: most logs are of the same vault
	effects  []mapping.Effect
	topics   [maxTopics]common.Hash
	mapped   mapping.Log // the log that is being mapped
	deferred []deferred  // logs of the current unit
}

// NewDecoder returns a decoder for the log of a chain. vaults has the mappings that are known before the log is read.
func NewDecoder(chainID uint64, vaults *mapping.Vaults) *Decoder {
	return &Decoder{chainID: chainID, vaults: vaults}
}

// deferred is a log that is mapped when its unit is complete, because its effects may depend on another log of its
// transaction.
type deferred struct {
	fact        *Fact
	sources     *mapping.Sources
	log         mapping.Log
	quarantined bool // quarantined, whatever the mapping returns
	record      []byte
}

func (d *Decoder) sourcesOf(vault common.Address) *mapping.Sources {
	if d.last == nil || d.last.Address != vault {
		d.last = d.vaults.Of(vault)
	}
	return d.last
}

// decodeRecord decodes a record. The fact keeps the raw bytes if no table stores the content in another form.
func (d *Decoder) decodeRecord(in chainlog.Raw, f *Fact) (err error) {
	*f = Fact{Seq: in.Seq, Boundary: in.Boundary, Offset: in.Offset, Sign: 1}
	var body []byte
	var kind protowire.Number
	err = chainlog.Fields(in.Value, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case recordRetracts:
			if f.Retracts = v; v != 0 {
				f.Sign = -1
			}
		case recordLog, recordBlock, recordVault, recordDecision, recordSample:
			kind, body = n, b
		}
	})
	if err != nil {
		return err
	}
	switch kind {
	case recordLog:
		f.Kind = readmodel.LogRecord
		err = d.log(f, body, in.Value)
	case recordBlock:
		f.Kind = readmodel.BlockRecord
		err = chainlog.Fields(body, func(n protowire.Number, v uint64, b []byte) {
			switch n {
			case blockNumber:
				f.Log.Block = v
			case blockHash:
				f.Hash = common.BytesToHash(b)
			case blockTime:
				f.Log.Time = seconds(v)
			}
		})
	case recordVault:
		f.Kind = readmodel.VaultRecord
		err = d.vault(f, body)
	case recordDecision:
		f.Kind = readmodel.DecisionRecord
	case recordSample:
		f.Kind = readmodel.SampleRecord
		err = d.sample(f, body)
	default:
		err = chainlog.ErrMalformed
	}
	if err == nil && in.Boundary {
		d.unit()
	}
	f.keepRaw(in.Value)
	return err
}

// keepRaw keeps the bytes of a record if no table stores its content in another form.
func (f *Fact) keepRaw(record []byte) {
	if f.Quarantined || f.has(mapping.Settled) || f.Kind == readmodel.VaultRecord || f.Kind == readmodel.DecisionRecord {
		f.Raw = record
	}
}

func (d *Decoder) vault(f *Fact, m []byte) error {
	v := &event.Vault{}
	if proto.Unmarshal(m, v) != nil {
		return chainlog.ErrMalformed
	}
	f.Log.Vault, f.Removed = common.BytesToAddress(v.GetAddress()), v.GetRemoved()
	if f.Sign < 0 || f.Removed {
		return nil
	}
	d.last = nil
	if err := d.vaults.Apply(v); err != nil {
		return err
	}
	f.Differs = !d.vaults.Of(f.Log.Vault).Matches(v)
	return nil
}

// sample decodes a sample, whose position in the chain is after all logs of its block.
func (d *Decoder) sample(f *Fact, m []byte) error {
	s := &event.Sample{}
	if proto.Unmarshal(m, s) != nil {
		return chainlog.ErrMalformed
	}
	f.Log = Log{Vault: common.BytesToAddress(s.GetVault()), Block: s.GetBlockNumber(), Time: seconds(s.GetBlockTime()),
		Index: readmodel.SampleIndex}
	f.Hash = common.BytesToHash(s.GetBlockHash())
	effects, sound := d.sourcesOf(f.Log.Vault).Measured(s)
	f.Effects, f.Quarantined = effects, !sound
	return nil
}

// unit maps the logs of the completed unit: the logs of one transaction for one vault together, in chain order.
func (d *Decoder) unit() {
	if len(d.deferred) == 0 {
		return
	}
	apart := func(a, b deferred) int {
		x, y := a.fact, b.fact
		return cmp.Or(x.Log.Vault.Cmp(y.Log.Vault), cmp.Compare(x.Log.Block, y.Log.Block), x.Hash.Cmp(y.Hash),
			x.Log.Tx.Cmp(y.Log.Tx), cmp.Compare(x.Sign, y.Sign))
	}
	slices.SortStableFunc(d.deferred, func(a, b deferred) int {
		return cmp.Or(apart(a, b), cmp.Compare(a.fact.Log.Index, b.fact.Log.Index))
	})
	for start, i := 0, 1; i <= len(d.deferred); i++ {
		if i == len(d.deferred) || apart(d.deferred[start], d.deferred[i]) != 0 {
			transaction(d.deferred[start:i])
			start = i
		}
	}
	clear(d.deferred)
	d.deferred = d.deferred[:0]
}

func transaction(all []deferred) {
	var logs []mapping.Log
	var of []*deferred
	for i := range all {
		if w := &all[i]; w.quarantined {
			w.fact.Quarantined = true
		} else {
			logs, of = append(logs, w.log), append(of, w)
		}
	}
	effects, err := all[0].sources.Map(logs, nil)
	for start, i := 0, 1; i <= len(effects); i++ {
		if i == len(effects) || effects[i].Log != effects[start].Log {
			of[effects[start].Log].fact.Effects = effects[start:i:i]
			start = i
		}
	}
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	for _, fault := range quarantine {
		of[fault.Log].fact.Quarantined = true
	}
	for i := range all {
		all[i].fact.keepRaw(all[i].record)
	}
}

// maxTopics is the maximum number of topics of an EVM log.
const maxTopics = 4

// log decodes a log. It quarantines a log that cannot be counted: its lengths are impossible in the EVM, its record
// does not contain its data, or the mapping rejects it.
func (d *Decoder) log(f *Fact, m, record []byte) error {
	var data []byte
	var contract common.Address
	count, odd, omitted, belongs := 0, false, false, false
	addressLength, txLength := 0, 0
	var at uint64
	err := chainlog.Fields(m, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case logAddress:
			addressLength, contract = len(b), common.BytesToAddress(b)
		case logTopics:
			odd = odd || len(b) != common.HashLength || count == maxTopics
			if count < maxTopics {
				d.topics[count] = common.BytesToHash(b)
				count++
			}
		case logData:
			data = b
		case logBlock:
			f.Log.Block = v
		case logHash:
			f.Hash = common.BytesToHash(b)
		case logTime:
			at, f.Log.Time = v, seconds(v)
		case logTx:
			txLength, f.Log.Tx = len(b), common.BytesToHash(b)
		case logIndex:
			f.Log.Index = uint32(v)
		case logNoData:
			omitted = len(b) > 0
		case logVault:
			if len(b) > 0 {
				f.Log.Vault, belongs = common.BytesToAddress(b), true
			}
		}
	})
	if err != nil {
		return err
	}
	if !belongs {
		f.Log.Vault = contract
	}
	sources := d.sourcesOf(f.Log.Vault)
	role, ours := sources.Role(contract)
	if !ours {
		return nil
	}
	odd = odd || omitted || addressLength != common.AddressLength || txLength != common.HashLength
	d.mapped = mapping.Log{Role: role, Place: mapping.Place(f.Log.Block, f.Log.Index), Time: at, Topics: d.topics[:count],
		Data: data}
	if sources.Companions() {
		known := sources.Event(&d.mapped)
		if known == nil {
			return nil
		}
		f.Named = known.Name
		d.mapped.Topics = slices.Clone(d.mapped.Topics)
		d.deferred = append(d.deferred, deferred{f, sources, d.mapped, odd, record})
		return nil
	}
	before := len(d.effects)
	known, effects, fault := sources.One(&d.mapped, d.effects)
	if known == nil {
		return nil
	}
	f.Named = known.Name
	made := effects[before:len(effects):len(effects)]
	if odd || fault != nil {
		f.Quarantined = true
		return nil
	}
	d.effects, f.Effects = effects, made
	return nil
}

// All decodes the next records. An invalid record is a *chainlog.CorruptError. The effects of a unit's logs are set
// once its last record was read.
func (d *Decoder) All(in []chainlog.Raw) ([]Fact, error) {
	out := make([]Fact, len(in))
	d.effects = make([]mapping.Effect, 0, len(in))
	for i := range in {
		if err := d.decodeRecord(in[i], &out[i]); err != nil {
			return nil, &chainlog.CorruptError{Topic: chainlog.LogTopic(d.chainID), Offset: in[i].Offset,
				Err: fmt.Errorf("seq %d: %w", in[i].Seq, err)}
		}
	}
	return out, nil
}
