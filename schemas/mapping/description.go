package mapping

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"go.yaml.in/yaml/v3"
)

// Description is a vault: the addresses of its sources, and which preset maps their logs in which blocks.
type Description struct {
	// Sources are in the order of the file; a Log's Role is an index into them.
	Sources []Source
	Ranges  []Range
}

// Source is a contract of a vault.
type Source struct {
	Role    string
	Address common.Address
	// Filters are the topics that select the vault's logs in a contract that several vaults share; empty if all logs of
	// the contract are the vault's.
	Filters []Filter
}

// Filter is a required topic: number 1 to 3, the indexed parameters.
type Filter struct {
	Topic int
	Value common.Hash
}

// Range is the range of blocks, From to To, both included, in which a mapping applies to a vault.
type Range struct {
	From, To uint64
	Mapping  *Mapping
	// Hash names the canonical text of the mapping, if a vault record has it.
	Hash common.Hash
}

// ParseFile parses and checks a mapping, or the description of a vault, which has the key `presets`; the other one is
// nil. preset returns a mapping that a description names; its error counts as a mistake. The error is Mistakes.
func ParseFile(
	file string, text []byte, preset func(name string) (*Mapping, error),
) (m *Mapping, d *Description, err error) {
	c := &checker{file: file}
	if root := c.document(text); root != nil && describes(root) {
		d = c.vault(root, preset)
	} else if root != nil {
		m = c.mapping(root)
	}
	if err := c.result(); err != nil {
		return nil, nil, err
	}
	if m != nil && m.queue.unmatched != nil {
		return nil, nil, m.queue.unmatched
	}
	return m, d, nil
}

func describes(root *yaml.Node) bool {
	for i := 0; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		if root.Content[i].Value == "presets" {
			return true
		}
	}
	return false
}

// Compile compiles a description of a vault whose shares have as many decimals as its asset.
func (d *Description) Compile() *Vault { return d.compile(equalDecimals) }

// compile compiles a description of a vault with NavDigits, 0 if it has none.
func (d *Description) compile(navDigits uint8) *Vault {
	sources := make([]string, len(d.Sources))
	for i := range d.Sources {
		sources[i] = d.Sources[i].Role
	}
	v := &Vault{navDigits: navDigits}
	for _, r := range d.Ranges {
		v.add(r.Mapping, r.From, r.To, sources)
	}
	return v
}

func (c *checker) vault(root *yaml.Node, preset func(string) (*Mapping, error)) *Description {
	d := &Description{}
	entries := c.entries(root, "a vault", []string{"sources", "presets"})
	for _, required := range []string{"sources", "presets"} {
		if named(entries, required) == nil {
			c.at(root, 0, "the key `%s` is missing", required)
		}
	}
	if e := named(entries, "presets"); e != nil {
		items := c.list(e.value, "`presets`")
		if e.value.Kind == yaml.SequenceNode && (len(items) == 0 || len(items) > maxRules) {
			c.at(e.value, 0, "`presets` must name between 1 and %d presets", maxRules)
			items = nil
		}
		for _, item := range items {
			c.blockRange(d, item, preset)
		}
		if err := d.checkTogether(); err != nil && c.found == 0 {
			first, _, _ := strings.Cut(err.Error(), "\n")
			c.at(e.value, 0, "%s", first)
		}
	}
	if e := named(entries, "sources"); e != nil {
		c.addresses(d, e.value)
	}
	return d
}

func (d *Description) checkTogether() error {
	all := make([]*Mapping, len(d.Ranges))
	for i, r := range d.Ranges {
		all[i] = r.Mapping
	}
	return Together(all)
}

func (c *checker) blockRange(d *Description, n *yaml.Node, preset func(string) (*Mapping, error)) {
	entries := c.entries(n, "a preset of a vault", []string{"preset", "from", "to"})
	if n.Kind != yaml.MappingNode {
		return
	}
	r := Range{To: math.MaxUint64}
	good := true
	for key, bound := range map[string]*uint64{"from": &r.From, "to": &r.To} {
		if e := named(entries, key); e != nil {
			v, err := strconv.ParseUint(e.value.Value, 10, 64)
			if err != nil || e.value.Kind != yaml.ScalarNode {
				c.at(e.value, 0, "`%s` is the number of a block, and not %q", key, e.value.Value)
				good = false
			}
			*bound = v
		}
	}
	if r.From > r.To {
		c.at(n, 0, "the blocks %d to %d are an empty range", r.From, r.To)
		good = false
	}
	e := named(entries, "preset")
	if e == nil {
		c.at(n, 0, "the key `preset` is missing")
		return
	}
	name, ok := c.word(e.value, "`preset`")
	if !ok {
		return
	}
	var err error
	if r.Mapping, err = preset(name); err != nil {
		c.at(e.value, 0, "%v", err)
		return
	}
	for _, other := range d.Ranges {
		if good && r.From <= other.To && other.From <= r.To {
			c.at(n, 0, "the blocks of `%s` overlap those of `%s`", name, other.Mapping.Name)
		}
	}
	d.Ranges = append(d.Ranges, r)
}

// addresses parses the sources of a vault, and compares them with those that its presets require.
func (c *checker) addresses(d *Description, n *yaml.Node) {
	at := map[common.Address]string{}
	for _, e := range c.entries(n, "`sources`", nil) {
		role := e.key.Value
		known := slices.ContainsFunc(d.Ranges, func(r Range) bool { _, ok := r.Mapping.Role(role); return ok })
		if len(d.Ranges) > 0 && !known {
			c.at(e.key, 0, "no preset of the vault has a source `%s`", role)
		}
		source, ok := c.contract(role, e.value)
		if !ok {
			continue
		}
		if other, ok := at[source.Address]; ok {
			c.at(e.value, 0, "the sources `%s` and `%s` have the same address", other, role)
			continue
		}
		at[source.Address] = role
		d.Sources = append(d.Sources, source)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, r := range d.Ranges {
		for _, role := range r.Mapping.Roles {
			given := slices.ContainsFunc(d.Sources, func(s Source) bool { return s.Role == role.Name })
			if !role.Optional && !given && c.found == 0 {
				c.at(n, 0, "the preset `%s` needs a source `%s`", r.Mapping.Name, role.Name)
			}
		}
	}
}

// contract parses a source: an address, possibly with topics that distinguish the vault's logs from others.
func (c *checker) contract(role string, n *yaml.Node) (Source, bool) {
	address, source := n, Source{Role: role}
	if n.Kind == yaml.MappingNode {
		before := c.found
		entries := c.entries(n, "a source", []string{"address", "topic1", "topic2", "topic3"})
		e := named(entries, "address")
		if e == nil {
			c.at(n, 0, "the key `address` is missing")
			return source, false
		}
		address = e.value
		for topic := 1; topic <= maxTopics-1; topic++ {
			key := "topic" + strconv.Itoa(topic)
			if e := named(entries, key); e != nil {
				word, err := FilterWord(e.value.Value)
				if err != nil {
					c.at(e.value, 0, "`%s` %v", key, err)
				}
				source.Filters = append(source.Filters, Filter{topic, word})
			}
		}
		if c.found > before {
			return source, false
		}
	}
	if address.Kind != yaml.ScalarNode || !common.IsHexAddress(address.Value) {
		c.at(address, 0, "%q is not an address", address.Value)
		return source, false
	}
	source.Address = common.HexToAddress(address.Value)
	return source, true
}

// FilterWord parses the value of a topic: an address, or all of its 32 bytes.
func FilterWord(text string) (common.Hash, error) {
	if common.IsHexAddress(text) {
		return common.BytesToHash(common.HexToAddress(text).Bytes()), nil
	}
	word, err := hexutil.Decode(text)
	if err != nil || len(word) != common.HashLength {
		return common.Hash{}, fmt.Errorf("is an address or 0x and 64 hex digits, and not %q", text)
	}
	return common.BytesToHash(word), nil
}
