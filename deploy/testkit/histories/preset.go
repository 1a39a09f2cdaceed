package histories

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// A Log is a log of a contract that is not one of the reference contracts.
type Log struct {
	Contract common.Address
	Topics   []common.Hash
	Data     []byte
	Joined   bool // it has the transaction of the log before it
}

// SampledEvery is the number of blocks between the NAV samples of a vault whose preset has any: the presets' own
// intervals are longer than most histories.
const SampledEvery = 3

// preset is a mapping whose vaults emit random logs: of each event that a rule names, with random values.
type preset struct {
	name    string
	text    []byte   // canonical
	roles   []string // sources of its vaults
	rules   []rule
	sampled bool
}

// rule is a rule of a mapping file.
type rule struct {
	emitted `yaml:",inline"`
	With    *struct {
		emitted `yaml:",inline"`
		Match   map[string]string `yaml:"match"` // parameter of the companion to $parameter of the event
	} `yaml:"with"`
}

// emitted is an event and the role of the contract that emits it.
type emitted struct {
	On     string `yaml:"on"`
	Source string `yaml:"source"`
}

// Map gives a vault, before its first record, the contracts of a preset.
func (s *Script) Map(vault common.Address, name string) {
	p, err := presetOf(name)
	if err != nil {
		panic(err)
	}
	s.mapped[vault] = p
}

func presetOf(name string) (*preset, error) {
	text, err := mapping.PresetText(name)
	if err != nil {
		return nil, err
	}
	often := strings.ReplaceAll(string(text), "every: 300", fmt.Sprint("every: ", SampledEvery))
	p := &preset{name: name, sampled: often != string(text)}
	if p.text, err = mapping.Canonical(name, []byte(often)); err != nil {
		return nil, err
	}
	m, err := mapping.Parse(name, p.text)
	if err != nil {
		return nil, err
	}
	for _, role := range m.Roles {
		p.roles = append(p.roles, role.Name)
	}
	var file struct{ Events []rule }
	if err := yaml.Unmarshal(p.text, &file); err != nil {
		return nil, err
	}
	p.rules = file.Events
	return p, nil
}

// contract returns the contract of a vault with a role.
func contract(vault common.Address, role string) common.Address {
	if role != "" && role != "vault" {
		copy(vault[:], role)
	}
	return vault
}

// describe adds the contracts and the mapping to a vault's record.
func (p *preset) describe(v *event.Vault) {
	var sources []mapping.Source
	for _, role := range p.roles {
		sources = append(sources, mapping.Source{Role: role, Address: contract(common.Address(v.GetAddress()), role)})
	}
	if err := mapping.Record(v, sources, []mapping.Text{{To: math.MaxUint64, Preset: p.name, Text: p.text}}); err != nil {
		panic(err)
	}
}

// anything returns a random log, and sometimes a second one in the same transaction that belongs to it. Few logs are not
// as a contract of the preset emits them.
func (p *preset) anything(rng *rand.Rand, vault common.Address, users int) []Said {
	r := p.rules[rng.IntN(len(p.rules))]
	values := map[string]common.Hash{}
	first := r.log(rng, vault, users, values)
	if rng.IntN(40) == 0 {
		first.Log.Data = first.Log.Data[:len(first.Log.Data)/2]
	}
	if r.With == nil || rng.IntN(3) == 0 {
		return []Said{first}
	}
	matched := map[string]common.Hash{}
	for parameter, value := range r.With.Match {
		matched[parameter] = values[strings.TrimPrefix(value, "$")]
	}
	second := r.With.log(rng, vault, users, matched)
	second.Log.Joined = true
	return []Said{first, second}
}

// log returns a log of the event, with given values of parameters and random ones, which it adds to the given ones.
func (e *emitted) log(rng *rand.Rand, vault common.Address, users int, values map[string]common.Hash) Said {
	name, rest, _ := strings.Cut(e.On, "(")
	var types []string
	l := &Log{Contract: contract(vault, e.Source), Topics: []common.Hash{{}}}
	for parameter := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
		words := strings.Fields(parameter)
		typ, called := words[0], words[len(words)-1]
		types = append(types, typ)
		if _, given := values[called]; !given {
			values[called] = anyValue(rng, name, typ, called, users)
		}
		if words[1] == "indexed" {
			l.Topics = append(l.Topics, values[called])
			continue
		}
		l.Data = append(l.Data, values[called].Bytes()...)
	}
	l.Topics[0] = crypto.Keccak256Hash([]byte(name + "(" + strings.Join(types, ",") + ")"))
	return Said{Vault: vault, Log: l}
}

// anyValue returns a random value of a parameter of an event. Ids are small, so that logs refer to each other.
func anyValue(rng *rand.Rand, event, typ, parameter string, users int) common.Hash {
	number := new(big.Int)
	switch lower := strings.ToLower(parameter); {
	case typ == "address" && event == "Transfer" && rng.IntN(2) == 0: // minted or burned
	case typ == "address":
		return common.BytesToHash(anyone(rng, users).Bytes())
	case typ == "bool":
		number.SetInt64(rng.Int64N(2))
	case typ == "bytes32" || strings.HasSuffix(lower, "id"):
		number.SetInt64(rng.Int64N(5))
	case strings.HasSuffix(lower, "time"):
		number.SetInt64(began + 12*rng.Int64N(30))
	case strings.HasPrefix(lower, "seconds"):
		number.SetInt64(rng.Int64N(100))
	default:
		number = anyAmount(rng)
	}
	if bits, err := strconv.Atoi(strings.TrimLeft(typ, "uint")); err == nil {
		number.Mod(number, Power(uint(bits), 0))
	}
	return common.BigToHash(number)
}

// sample appends the NAV sample of a vault at a block, if one is due. Its value depends only on the block: few calls
// fail, and few return a number that is too large.
func (s *Script) sample(vault common.Address, number uint64) {
	p := s.mapped[vault]
	if p == nil || !p.sampled || number%SampledEvery != 0 {
		return
	}
	h := s.headers[number]
	value := new(big.Int).SetBytes(h.hash[:3])
	switch draw := h.hash[4] % 16; {
	case draw == 0:
		return
	case draw == 1:
		value = Power(191, 0)
	}
	digits, _ := mapping.NavDigits(18, 6)
	s.put(&event.Record{Fact: &event.Record_Sample{Sample: &event.Sample{Vault: vault.Bytes(), BlockNumber: number, BlockHash: h.hash.Bytes(),
		BlockTime: h.time, NavDigits: digits, Assets: common.BigToHash(value).Bytes()}}})
}
