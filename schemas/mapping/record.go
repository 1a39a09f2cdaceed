package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// Canonical returns a mapping without comments and layout: texts with the same meaning have the same canonical text. It
// is JSON, which is also YAML. The error is Mistakes, without those that an earlier version did not know (Parse): the
// log may have the text.
func Canonical(file string, text []byte) ([]byte, error) {
	c := &checker{file: file, recorded: true}
	if _, err := c.parse(text); err != nil {
		return nil, err
	}
	root := c.document(text)
	var out bytes.Buffer
	canonical(&out, root)
	return out.Bytes(), nil
}

func canonical(out *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			canonical(out, n.Content[i])
			out.WriteByte(':')
			canonical(out, n.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			canonical(out, item)
		}
		out.WriteByte(']')
	default:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(n.Value) // encoding a string cannot fail
		out.Truncate(out.Len() - 1) // the final newline
	}
}

// Text is a mapping as stored in a vault record.
type Text struct {
	From, To uint64 // blocks, both included
	Preset   string
	// Text is the canonical text.
	Text []byte
}

// Hash returns the hash that identifies a text.
func Hash(text []byte) common.Hash { return crypto.Keccak256Hash(text) }

// Describe builds the description of a vault from its contracts and mappings, as in its record. The error names what
// does not fit: overlapping blocks, a source that is in no mapping or filters a topic that no log has, or a missing one
// that a mapping requires.
func Describe(sources []Source, texts []Text) (*Description, error) {
	d := &Description{Sources: sources}
	for _, t := range texts {
		m, err := (&checker{file: t.Preset, recorded: true}).parse(t.Text)
		if err != nil {
			return nil, err
		}
		if t.From > t.To {
			return nil, fmt.Errorf("the blocks %d to %d of the mapping `%s` are an empty range", t.From, t.To, m.Name)
		}
		for _, other := range d.Ranges {
			if t.From <= other.To && other.From <= t.To {
				return nil, fmt.Errorf("the blocks of the mapping `%s` overlap those of `%s`", m.Name, other.Mapping.Name)
			}
		}
		d.Ranges = append(d.Ranges, Range{t.From, t.To, m, Hash(t.Text)})
	}
	for i, s := range sources {
		if !slices.ContainsFunc(d.Ranges, func(r Range) bool { _, ok := r.Mapping.Role(s.Role); return ok }) {
			return nil, fmt.Errorf("no mapping of the vault has a source `%s`", s.Role)
		}
		for _, f := range s.Filters {
			if f.Topic < 1 || f.Topic >= maxTopics {
				return nil, fmt.Errorf("the source `%s` filters topic %d, which is none of 1 to %d", s.Role, f.Topic,
					maxTopics-1)
			}
		}
		for _, other := range sources[:i] {
			if other.Role == s.Role {
				return nil, fmt.Errorf("the source `%s` appears twice", s.Role)
			}
			if other.Address == s.Address {
				return nil, fmt.Errorf("the sources `%s` and `%s` have the same address", other.Role, s.Role)
			}
		}
	}
	for _, r := range d.Ranges {
		for _, role := range r.Mapping.Roles {
			if !role.Optional && !slices.ContainsFunc(sources, func(s Source) bool { return s.Role == role.Name }) {
				return nil, fmt.Errorf("the mapping `%s` needs a source `%s`", r.Mapping.Name, role.Name)
			}
		}
	}
	return d, nil
}

// referenceText returns the canonical text of the reference preset.
var referenceText = sync.OnceValues(func() ([]byte, error) {
	text, err := PresetText("reference")
	if err != nil {
		return nil, err
	}
	return Canonical("reference", text)
})

// Record puts contracts and mappings into a vault record. It leaves them out if there is one source, the vault itself,
// with the preset reference in all blocks, because a record without them means that.
func Record(v *event.Vault, sources []Source, texts []Text) error {
	v.Sources, v.Mappings = nil, nil
	if len(sources) == 1 && len(sources[0].Filters) == 0 && sources[0].Address == common.BytesToAddress(v.GetAddress()) &&
		len(texts) == 1 && texts[0].From == 0 && texts[0].To == math.MaxUint64 {
		text, err := referenceText()
		if err != nil {
			return err
		}
		if bytes.Equal(text, texts[0].Text) {
			return nil
		}
	}
	for _, s := range sources {
		source := &event.Source{Role: s.Role, Address: s.Address.Bytes()}
		for _, f := range s.Filters {
			source.Filters = append(source.Filters, &event.TopicFilter{Topic: uint32(f.Topic), Value: f.Value.Bytes()})
		}
		v.Sources = append(v.Sources, source)
	}
	for _, t := range texts {
		v.Mappings = append(v.Mappings, &event.MappingRange{First: t.From, Last: t.To, Preset: t.Preset, Text: t.Text,
			Hash: Hash(t.Text).Bytes()})
	}
	return nil
}

// Sources are a vault's contracts and its compiled mapping, from its record. They never change.
type Sources struct {
	*Vault
	Address     common.Address
	Description *Description
	// Hash identifies the contracts, the mappings, the aliases and NavDigits together: zero for a record without mappings.
	Hash common.Hash
}

// Read returns the contracts and mappings of a vault record.
func Read(v *event.Vault) (*Sources, error) {
	address := common.BytesToAddress(v.GetAddress())
	if len(v.GetMappings()) == 0 {
		return reference(address), nil
	}
	var sources []Source
	for _, s := range v.GetSources() {
		source := Source{Role: s.GetRole(), Address: common.BytesToAddress(s.GetAddress())}
		for _, f := range s.GetFilters() {
			if len(f.GetValue()) != common.HashLength {
				return nil, fmt.Errorf("the record of vault %s filters topic %d by %d bytes", address, f.GetTopic(),
					len(f.GetValue()))
			}
			source.Filters = append(source.Filters, Filter{int(f.GetTopic()), common.BytesToHash(f.GetValue())})
		}
		sources = append(sources, source)
	}
	var texts []Text
	for _, m := range v.GetMappings() {
		if Hash(m.GetText()) != common.BytesToHash(m.GetHash()) {
			return nil, fmt.Errorf("the record of vault %s has a mapping `%s` that is not of its hash", address, m.GetPreset())
		}
		texts = append(texts, Text{m.GetFirst(), m.GetLast(), m.GetPreset(), m.GetText()})
	}
	d, err := Describe(sources, texts)
	if err != nil {
		return nil, fmt.Errorf("the record of vault %s: %w", address, err)
	}
	aliases, err := aliasesOf(v)
	if err != nil {
		return nil, err
	}
	return &Sources{Vault: d.compile(navDigitsOf(v)).WithAliases(aliases), Address: address, Description: d,
		Hash: hashOf(v)}, nil
}

// hashOf returns the hash of a record's contracts, mappings, aliases and NavDigits: of everything that determines the
// effects of its logs.
func hashOf(v *event.Vault) common.Hash {
	if len(v.GetMappings()) == 0 {
		return common.Hash{}
	}
	var all bytes.Buffer
	for _, s := range v.GetSources() {
		fmt.Fprintf(&all, "source %q %x\n", s.GetRole(), s.GetAddress())
		for _, f := range s.GetFilters() {
			fmt.Fprintf(&all, "topic %d %x\n", f.GetTopic(), f.GetValue())
		}
	}
	for _, m := range v.GetMappings() {
		fmt.Fprintf(&all, "mapping %d %d %x\n", m.GetFirst(), m.GetLast(), m.GetHash())
	}
	for _, a := range v.GetAliases() {
		fmt.Fprintf(&all, "alias %x %d\n", a.GetValue(), a.GetPartnerId())
	}
	if digits := navDigitsOf(v); digits != equalDecimals {
		fmt.Fprintf(&all, "nav digits %d\n", digits)
	}
	return crypto.Keccak256Hash(all.Bytes())
}

// SameMapping reports whether two records of a vault give its logs the same effects: they have the same contracts,
// mappings, aliases and NavDigits.
func SameMapping(a, b *event.Vault) bool { return hashOf(a) == hashOf(b) }

// VaultOnly returns the sources of vaults whose only contract is the vault itself, with this mapping in all blocks.
func (m *Mapping) VaultOnly() func(vault common.Address) *Sources {
	ranges := []Range{{To: math.MaxUint64, Mapping: m}}
	compiled := (&Description{Sources: []Source{{Role: "vault"}}, Ranges: ranges}).Compile()
	return func(vault common.Address) *Sources {
		return &Sources{Vault: compiled, Address: vault,
			Description: &Description{Sources: []Source{{Role: "vault", Address: vault}}, Ranges: ranges}}
	}
}

var referenceVaults = sync.OnceValue(func() func(common.Address) *Sources { return referenceMapping().VaultOnly() })

func reference(vault common.Address) *Sources { return referenceVaults()(vault) }

// Matches reports whether a vault record has these contracts, mappings, aliases and NavDigits.
func (s *Sources) Matches(v *event.Vault) bool { return s.Hash == hashOf(v) }

// Role returns which source of the vault a contract is.
func (s *Sources) Role(contract common.Address) (uint8, bool) {
	for i := range s.Description.Sources {
		if s.Description.Sources[i].Address == contract {
			return uint8(i), true
		}
	}
	return 0, false
}

// Companions reports whether a log may need another log of its transaction.
func (v *Vault) Companions() bool { return len(v.companions) > 0 }

// Addresses returns the contracts of the vault.
func (s *Sources) Addresses() []common.Address {
	out := make([]common.Address, len(s.Description.Sources))
	for i := range out {
		out[i] = s.Description.Sources[i].Address
	}
	return out
}

// Takes reports whether a log is the vault's: a contract of the vault emitted it, and it has the topics that the source
// filters by.
func (s *Sources) Takes(l *event.Log) bool {
	topics := make([]common.Hash, len(l.GetTopics()))
	for i, t := range l.GetTopics() {
		topics[i] = common.BytesToHash(t)
	}
	return s.TakesLog(common.BytesToAddress(l.GetAddress()), topics)
}

// TakesLog is Takes for a log by its contract and topics.
func (s *Sources) TakesLog(contract common.Address, topics []common.Hash) bool {
	for i := range s.Description.Sources {
		if source := &s.Description.Sources[i]; source.Address == contract {
			return !slices.ContainsFunc(source.Filters, func(f Filter) bool {
				return f.Topic >= len(topics) || topics[f.Topic] != f.Value
			})
		}
	}
	return false
}

// Overlap reports whether a log can belong to both sources: they are the same contract, and no topic distinguishes
// them.
func (s *Source) Overlap(other *Source) bool {
	if s.Address != other.Address {
		return false
	}
	for _, f := range s.Filters {
		for _, g := range other.Filters {
			if f.Topic == g.Topic && f.Value != g.Value {
				return false
			}
		}
	}
	return true
}

// VaultOf returns the vault of a log.
func VaultOf(l *event.Log) common.Address {
	if v := l.GetVault(); len(v) > 0 {
		return common.BytesToAddress(v)
	}
	return common.BytesToAddress(l.GetAddress())
}

// Vaults maps the logs of each vault by the vault records of a log. The first record of a vault counts: a reader keeps
// one mapping, and another reader starts with the newer one. It is safe for concurrent use.
type Vaults struct {
	mu sync.Mutex
	of map[common.Address]*Sources
}

// NewVaults starts with records that take precedence over those of the log.
func NewVaults(records ...*event.Vault) (*Vaults, error) {
	v := &Vaults{of: map[common.Address]*Sources{}}
	for _, r := range records {
		if err := v.Apply(r); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Decode starts with encoded records, as stored in a generation.
func Decode(records [][]byte) (*Vaults, error) {
	var all []*event.Vault
	for _, encoded := range records {
		r := &event.Vault{}
		if err := proto.Unmarshal(encoded, r); err != nil {
			return nil, fmt.Errorf("decode a vault record: %w", err)
		}
		all = append(all, r)
	}
	return NewVaults(all...)
}

// Apply applies the next vault record of the log.
func (v *Vaults) Apply(r *event.Vault) error {
	address := common.BytesToAddress(r.GetAddress())
	v.mu.Lock()
	known := v.of[address] != nil
	v.mu.Unlock()
	if known {
		return nil
	}
	return v.Set(r)
}

// Set replaces the record of a vault from now on.
func (v *Vaults) Set(r *event.Vault) error {
	if r.GetRemoved() {
		return nil
	}
	s, err := Read(r)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of[s.Address] = s
	return nil
}

// Of returns the sources of a vault: those of the reference contracts if there is no other record, even if v is nil.
func (v *Vaults) Of(vault common.Address) *Sources {
	if v == nil {
		return reference(vault)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.of[vault]
	if s == nil {
		s = reference(vault)
		v.of[vault] = s
	}
	return s
}

// FromRecord converts a log of a record to the input of a mapping. ok is false if no source of the vault emitted it, or
// if it has lengths that are impossible on the EVM.
func (s *Sources) FromRecord(l *event.Log) (out Log, ok bool) {
	role, ok := s.Role(common.BytesToAddress(l.GetAddress()))
	out = Log{Role: role, Place: Place(l.GetBlockNumber(), l.GetLogIndex()), Time: l.GetBlockTime(), Data: l.GetData()}
	ok = ok && len(l.GetAddress()) == common.AddressLength && len(l.GetTxHash()) == common.HashLength &&
		len(l.GetTopics()) <= maxTopics && !l.Omitted()
	out.Topics = make([]common.Hash, 0, maxTopics)
	for _, t := range l.GetTopics()[:min(len(l.GetTopics()), maxTopics)] {
		ok = ok && len(t) == common.HashLength
		out.Topics = append(out.Topics, common.BytesToHash(t))
	}
	return out, ok
}

// Contracts returns the contracts of vaults, without duplicates.
func (v *Vaults) Contracts(vaults []common.Address) []common.Address {
	var contracts []common.Address
	for _, vault := range vaults {
		for _, a := range v.Of(vault).Addresses() {
			if !slices.Contains(contracts, a) {
				contracts = append(contracts, a)
			}
		}
	}
	return contracts
}

// Belonging returns the logs that belong to one of vaults, and sets the vault of each. The others come from a contract
// that several vaults share.
func (v *Vaults) Belonging(vaults []common.Address, logs []*event.Log) []*event.Log {
	return slices.DeleteFunc(logs, func(l *event.Log) bool {
		for _, vault := range vaults {
			if v.Of(vault).Takes(l) {
				if l.Vault = nil; common.BytesToAddress(l.GetAddress()) != vault {
					l.Vault = vault.Bytes()
				}
				return false
			}
		}
		return true
	})
}
