package histories

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
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

// Presets are the mappings that navlog ships, and some of which one follows another.
func Presets() []string {
	return append(mapping.Presets(), "reference,veda", "lagoon-v0.6,midas", "erc7540,lagoon-v0.6", "yo,reference",
		"erc4626,erc7540")
}

// sampledEvery is the number of blocks between the NAV samples of a vault whose preset has any: the presets' own
// intervals are longer than most histories.
const sampledEvery = 3

// protocol is that of a vault of one preset, or of two, of which the second begins at a block. Its contracts emit
// random logs: of each event that a rule names, with random values.
type protocol struct {
	texts   []mapping.Text
	roles   []string
	rules   []rule
	aliased bool // logs name partners by other values than their ids
	// These follow from the vault's record.
	description *mapping.Description
	navDigits   uint32
	sampled     bool // NAV can be sampled
}

// rule is a rule of a mapping file.
type rule struct {
	emitted `yaml:",inline"`
	Emit    any `yaml:"emit"` // one effect or several
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

// mapTo gives a vault, before its first record, the contracts of a preset. Another one may follow some blocks after the
// first.
func (s *Script) mapTo(vault common.Address, presets ...string) {
	p, until := &protocol{}, s.First+10
	for i, name := range presets {
		if err := p.add(name); err != nil {
			panic(err)
		}
		text := &p.texts[i]
		if text.To = math.MaxUint64; i > 0 {
			text.From, p.texts[i-1].To = until+1, until
		}
	}
	s.mapped[vault] = p
}

// add adds a preset.
func (p *protocol) add(name string) error {
	text, err := mapping.PresetText(name)
	if err != nil {
		return err
	}
	often := strings.ReplaceAll(string(text), "every: 300", fmt.Sprint("every: ", sampledEvery))
	canonical, err := mapping.Canonical(name, []byte(often))
	if err != nil {
		return err
	}
	m, err := mapping.Parse(name, canonical)
	if err != nil {
		return err
	}
	for _, role := range m.Roles {
		if !slices.Contains(p.roles, role.Name) {
			p.roles = append(p.roles, role.Name)
		}
	}
	var file struct{ Events []rule }
	if err := yaml.Unmarshal(canonical, &file); err != nil {
		return err
	}
	p.texts, p.rules = append(p.texts, mapping.Text{Preset: name, Text: canonical}), append(p.rules, file.Events...)
	p.aliased = p.aliased || strings.Contains(often, "attribution:")
	return nil
}

// contract returns the contract of a vault with a role. All vaults have the same gateway.
func contract(vault common.Address, role string) common.Address {
	switch role {
	case "", "vault":
		return vault
	case "gateway":
		vault = common.Address{}
	}
	copy(vault[:], role)
	return vault
}

// describe adds the contracts and the mapping to a vault's record. Some values of attribution are aliases of partners.
// Some vaults have so many decimals that no amount follows from a NAV.
func (p *protocol) describe(v *event.Vault) {
	v.Decimals = []uint32{18, 6, 60}[v.GetAddress()[common.AddressLength-1]%3]
	var sources []mapping.Source
	for _, role := range p.roles {
		sources = append(sources, mapping.Source{Role: role, Address: contract(common.Address(v.GetAddress()), role)})
	}
	if err := mapping.Record(v, sources, p.texts); err != nil {
		panic(err)
	}
	for id := uint32(1); p.aliased && id <= 3; id++ {
		for _, value := range []common.Hash{common.BigToHash(Whole(int64(id))), common.BytesToHash(UserAt(int(id)).Bytes())} {
			v.Aliases = append(v.Aliases, &event.Alias{Value: value.Bytes(), PartnerId: id})
		}
	}
	read, err := mapping.Read(v)
	if err != nil {
		panic(err)
	}
	p.description = read.Description
	p.navDigits, p.sampled = mapping.NavDigits(v.GetDecimals(), v.GetAsset().GetDecimals())
}

// anything returns a random log, and sometimes a second one in the same transaction that belongs to it. Most have an
// effect on a deposit, a request or the NAV. Few logs are not as a contract of the preset emits them.
func (p *protocol) anything(rng *rand.Rand, vault common.Address, users int) []Emitted {
	r := p.rules[rng.IntN(len(p.rules))]
	for tries := 0; tries < 2 && (r.Emit == "none" || r.Emit == "supply"); tries++ {
		r = p.rules[rng.IntN(len(p.rules))]
	}
	values := map[string]common.Hash{}
	first := r.log(rng, vault, users, values)
	if rng.IntN(40) == 0 {
		first.Data = first.Data[:len(first.Data)/2]
	}
	if r.With == nil || rng.IntN(3) == 0 {
		return []Emitted{{vault, first}}
	}
	matched := map[string]common.Hash{}
	for parameter, value := range r.With.Match {
		matched[parameter] = values[strings.TrimPrefix(value, "$")]
	}
	second := r.With.log(rng, vault, users, matched)
	second.Joined = true
	return []Emitted{{vault, first}, {vault, second}}
}

// log returns a log of the event, with given values of parameters and random ones, which it adds to the given ones.
func (e *emitted) log(rng *rand.Rand, vault common.Address, users int, values map[string]common.Hash) *Log {
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
	return l
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
	if p == nil || !p.sampled {
		return
	}
	if _, due := p.description.Sampled(number); !due {
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
	s.put(&event.Record{Fact: &event.Record_Sample{Sample: &event.Sample{Vault: vault.Bytes(), BlockNumber: number,
		BlockHash: h.hash.Bytes(), BlockTime: h.time, NavDigits: p.navDigits, Assets: common.BigToHash(value).Bytes()}}})
}
