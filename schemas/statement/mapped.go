package statement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/webhook"
)

// Source is a contract of a vault, with the topics that its logs must have.
type Source struct {
	Role    string  `json:"role"`
	Address string  `json:"address"`
	Topics  []Topic `json:"topics,omitempty"`
}

// Topic is one that the logs of a shared contract must have to be the vault's.
type Topic struct {
	Topic int         `json:"topic"`
	Value common.Hash `json:"value"`
}

// Mapping names the mapping of a vault's logs in a range of blocks: its name, and the hash of its canonical text.
type Mapping struct {
	From   string      `json:"from,omitempty"`
	To     string      `json:"to,omitempty"`
	Preset string      `json:"preset"`
	Hash   common.Hash `json:"hash"`
}

// Mapped adds to a vault of a partner's statement how its logs are read. For a vault of the reference contracts it adds
// nothing.
func (v *Vault) Mapped(s *mapping.Sources, partner uint32) {
	if s.Hash == (common.Hash{}) {
		return
	}
	v.Aliases = s.AliasesOf(partner)
	for _, source := range s.Description.Sources {
		out := Source{Role: source.Role, Address: source.Address.Hex()}
		for _, f := range source.Filters {
			out.Topics = append(out.Topics, Topic{f.Topic, f.Value})
		}
		v.Sources = append(v.Sources, out)
	}
	for _, r := range s.Description.Ranges {
		m := Mapping{Preset: r.Mapping.Name, Hash: r.Hash}
		if r.From > 0 {
			m.From = strconv.FormatUint(r.From, 10)
		}
		if r.To < math.MaxUint64 {
			m.To = strconv.FormatUint(r.To, 10)
		}
		v.Mappings = append(v.Mappings, m)
	}
}

// Texts are canonical texts of mappings by their hashes.
type Texts map[common.Hash][]byte

// Add adds a mapping. file is only its name. The error is mapping.Mistakes.
func (t Texts) Add(file string, text []byte) error {
	canonical, err := mapping.Canonical(file, text)
	if err == nil {
		t[mapping.Hash(canonical)] = canonical
	}
	return err
}

// BuiltIn are the texts of the presets.
func BuiltIn() (Texts, error) {
	out := Texts{}
	for _, name := range mapping.Presets() {
		text, err := mapping.PresetText(name)
		if err == nil {
			err = out.Add(name, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// UnknownMapping is a mapping that a statement names and whose text is not given.
type UnknownMapping struct{ Vault, Preset, Hash string }

func (e *UnknownMapping) Error() string {
	return fmt.Sprintf("the logs of vault %s are decoded with the mapping %q with the hash %s, which is not a preset of "+
		"this version of navlog", e.Vault, e.Preset, e.Hash)
}

// sources are how the logs of a vault of a partner's statement are read; nil for a vault of the reference contracts.
func (v *Vault) sources(texts Texts, partner uint32) (*mapping.Sources, error) {
	if len(v.Mappings) == 0 && len(v.Sources) == 0 {
		return nil, nil
	}
	var sources []mapping.Source
	for _, s := range v.Sources {
		source := mapping.Source{Role: s.Role, Address: common.HexToAddress(s.Address)}
		if source.Address.Hex() != s.Address { // it would be read as another address than it shows
			return nil, contradict("vault %s has the source %q, which is not valid", v.Address, s.Address)
		}
		for _, t := range s.Topics {
			source.Filters = append(source.Filters, mapping.Filter{Topic: t.Topic, Value: t.Value})
		}
		sources = append(sources, source)
	}
	var ranges []mapping.Text
	for _, m := range v.Mappings {
		r := mapping.Text{To: math.MaxUint64, Preset: m.Preset, Text: texts[m.Hash]}
		if r.Text == nil {
			return nil, &UnknownMapping{v.Address, m.Preset, m.Hash.Hex()}
		}
		var err error
		if m.From != "" {
			r.From, err = strconv.ParseUint(m.From, 10, 64)
		}
		if m.To != "" && err == nil {
			r.To, err = strconv.ParseUint(m.To, 10, 64)
		}
		if err != nil {
			return nil, contradict("the mapping %q of vault %s is for blocks from %q to %q", m.Preset, v.Address, m.From, m.To)
		}
		ranges = append(ranges, r)
	}
	d, err := mapping.Describe(sources, ranges)
	if err != nil {
		return nil, contradict("its vault %s: %v", v.Address, err)
	}
	for i, r := range d.Ranges {
		if m := v.Mappings[i]; r.Mapping.Name != m.Preset {
			return nil, contradict("the mapping of vault %s with the hash %s is %q, and not %q", v.Address, m.Hash,
				r.Mapping.Name, m.Preset)
		}
	}
	aliases := map[common.Hash]uint32{}
	for _, value := range v.Aliases {
		if value == (common.Hash{}) {
			return nil, contradict("vault %s has an alias for logs that name no partner", v.Address)
		}
		aliases[value] = partner
	}
	return &mapping.Sources{Vault: d.Compile().WithAliases(aliases), Address: common.HexToAddress(v.Address),
		Description: d}, nil
}

// placed is an event of the chain, and the contract that emitted it.
type placed struct {
	event    Event
	block    uint64
	index    uint32
	contract common.Address
	vault    int // in the statement, -1 for none
}

func (p placed) compare(q placed) int {
	return cmp.Or(cmp.Compare(p.block, q.block), cmp.Compare(p.index, q.index))
}

// mappedEvents are the partner's events among logs of vaults with another mapping than the reference.
func (r *rebuilding) mappedEvents(logs []*event.Log) (out []placed) {
	for i, sources := range r.mapped {
		if sources == nil {
			continue
		}
		var tx []*event.Log
		done := func() {
			for at, effect := range sources.Referrals(tx) {
				if effect == nil {
					continue
				}
				if e, ok := r.fromReferral(tx[at], effect); ok {
					out = append(out, placed{e, tx[at].GetBlockNumber(), tx[at].GetLogIndex(),
						common.BytesToAddress(tx[at].GetAddress()), i})
				}
			}
			tx = nil
		}
		for _, l := range logs { // in the order of the chain, so that those of a transaction are together
			if !sources.Takes(l) {
				continue
			}
			if len(tx) > 0 && (tx[0].GetBlockNumber() != l.GetBlockNumber() || !slices.Equal(tx[0].GetTxHash(), l.GetTxHash())) {
				done()
			}
			of := proto.CloneOf(l)
			of.Vault = sources.Address.Bytes()
			tx = append(tx, of)
		}
		done()
	}
	return out
}

// fromReferral returns a log as an event of the partner's statement; effect is nil for one of the reference contracts.
// It returns false if the log is another event or another partner's, or if no total counts it.
func (r *rebuilding) fromReferral(l *event.Log, effect *event.Effect) (Event, bool) {
	e, err := webhook.FromReferral(
		&event.Referral{ChainId: r.header.ChainID, PartnerId: r.header.PartnerID, Log: l, Effect: effect})
	if err != nil || e.Quarantined != "" {
		return Event{}, false
	}
	return Event{ID: e.ID, Type: e.Type, BlockHash: common.BytesToHash(l.GetBlockHash()).Hex(), Data: e.Data}, true
}
