package vaults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// vault is a vault that is indexed. As JSON it is the argument of the command that adds it, with the mappings
// themselves, because a file may be on another machine.
type vault struct {
	Address common.Address
	Start   uint64 // at least 1: block 0 has no transactions and so no logs
	Name    string
	*Spec   // nil: as in the log
}

// Spec is the configuration of a vault, without its address. It is exported for encoding/json.
type Spec struct {
	Sources []mapping.Source
	Texts   []mapping.Text
	Symbol  string
	// Decimals and AssetDecimals are -1 if they are read from the contract.
	Decimals, AssetDecimals int
	Asset                   *common.Address
	AssetSymbol             string
}

// record returns a vault record of the spec, without the values that are read from the chain.
func (s *Spec) record(address common.Address, start uint64, name string) (*event.Vault, error) {
	v := &event.Vault{Address: address[:], StartBlock: start, Name: name, Symbol: s.Symbol}
	return v, mapping.Record(v, s.Sources, s.Texts)
}

// maxText is the maximum size of all mappings of a vault, in bytes: its record must fit into a Kafka batch.
const maxText = 512 << 10

// spec reads the mappings of a vault.
func (v Config) spec() (*Spec, error) {
	address := common.HexToAddress(v.Address)
	out := &Spec{Symbol: v.Symbol, Decimals: -1, AssetDecimals: -1, AssetSymbol: v.Asset.Symbol}
	if v.Decimals != nil {
		out.Decimals = int(*v.Decimals)
	}
	if v.Asset.Decimals != nil {
		out.AssetDecimals = int(*v.Asset.Decimals)
	}
	var faults []error
	if v.Asset.Address != "" {
		asset := common.HexToAddress(v.Asset.Address)
		if out.Asset = &asset; !addressText.MatchString(v.Asset.Address) {
			faults = append(faults, fmt.Errorf("asset.address is %q and must be 0x and 40 hex digits", v.Asset.Address))
		}
	}
	ranges := v.Mappings
	switch {
	case v.Mapping != "" && len(ranges) > 0:
		faults = append(faults, errors.New("mapping and mappings are both given: `mappings` names each with its blocks"))
	case len(ranges) == 0:
		ranges = []MappingConfig{{Mapping: cmp.Or(v.Mapping, "reference")}}
	}
	var all []*mapping.Mapping
	for _, r := range ranges {
		text := mapping.Text{From: r.From, To: math.MaxUint64}
		if r.To != nil {
			text.To = *r.To
		}
		m, canonical, err := readMapping(r.Mapping)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		text.Preset, text.Text = m.Name, canonical
		all, out.Texts = append(all, m), append(out.Texts, text)
	}
	if err := mapping.Together(all); err != nil && len(all) == len(ranges) {
		faults = append(faults, err)
	}
	faults = append(faults, out.tooLong()...)
	if out.Sources = v.sources(address, &faults); len(faults) == 0 {
		if _, err := mapping.Describe(out.Sources, out.Texts); err != nil {
			faults = append(faults, err)
		}
	}
	return out, errors.Join(faults...)
}

func (s *Spec) tooLong() (faults []error) {
	for name, label := range map[string]string{"symbol": s.Symbol, "asset.symbol": s.AssetSymbol} {
		if len(label) > maxLabel || !utf8.ValidString(label) {
			faults = append(faults, fmt.Errorf("%s has %d bytes and must be UTF-8 of at most %d", name, len(label), maxLabel))
		}
	}
	size := 0
	for _, text := range s.Texts {
		size += len(text.Text)
	}
	if size > maxText {
		faults = append(faults, fmt.Errorf("the mappings have %d bytes together and may have %d", size, maxText))
	}
	return faults
}

func (v Config) sources(address common.Address, faults *[]error) (out []mapping.Source) {
	itself := false
	for _, role := range slices.Sorted(maps.Keys(v.Sources)) {
		c := v.Sources[role]
		if !addressText.MatchString(c.Address) {
			*faults = append(*faults, fmt.Errorf("sources.%s is %q and must be 0x and 40 hex digits", role, c.Address))
			continue
		}
		source := mapping.Source{Role: role, Address: common.HexToAddress(c.Address)}
		itself = itself || source.Address == address
		for i, text := range []string{c.Topic1, c.Topic2, c.Topic3} {
			if text == "" {
				continue
			}
			value, err := mapping.FilterWord(text)
			if err != nil {
				*faults = append(*faults, fmt.Errorf("sources.%s.topic%d %w", role, i+1, err))
			}
			source.Filters = append(source.Filters, mapping.Filter{Topic: i + 1, Value: value})
		}
		out = append(out, source)
	}
	if !itself {
		out = slices.Insert(out, 0, mapping.Source{Role: "vault", Address: address})
	}
	return out
}

// readMapping reads a preset or a file. The error names all its mistakes, with line and column.
func readMapping(name string) (m *mapping.Mapping, canonical []byte, err error) {
	file, text := name+".yaml", []byte(nil)
	if ext := filepath.Ext(name); strings.ContainsRune(name, '/') || ext == ".yaml" || ext == ".yml" {
		file = name
		text, err = mapping.ReadFile(name)
	} else {
		text, err = mapping.PresetText(name)
	}
	if err != nil {
		return nil, nil, err
	}
	if m, err = mapping.Parse(file, text); err != nil {
		return nil, nil, err
	}
	canonical, err = mapping.Canonical(file, text)
	return m, canonical, err
}

// read returns the configured vaults, and every mistake in their mappings and sources.
func read(all []Config) (set Set, faults []error) {
	for i, v := range all {
		s, err := v.spec()
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				faults = append(faults, fmt.Errorf("chain.vaults[%d]: %s", i, line))
			}
			s = &Spec{}
		}
		for j, other := range set {
			if a := overlap(s.Sources, other.Sources); a != nil {
				faults = append(faults, fmt.Errorf("chain.vaults[%d] and chain.vaults[%d] share the contract %s, and no topic "+
					"distinguishes their logs", j, i, a))
			}
		}
		set = append(set, vault{common.HexToAddress(v.Address), max(1, v.StartBlock), v.Name, s})
	}
	return set, faults
}

// overlap returns a contract that both share and whose logs could belong to either; nil for none.
func overlap(a, b []mapping.Source) *common.Address {
	for i := range a {
		if slices.ContainsFunc(b, func(s mapping.Source) bool { return a[i].Overlap(&s) }) {
			return &a[i].Address
		}
	}
	return nil
}

// Read returns the configured vaults, ready to use.
func Read(all []Config) (Set, error) {
	set, faults := read(all)
	return set, errors.Join(faults...)
}

// FirstBlock returns the lowest start block.
func (set Set) FirstBlock() uint64 {
	return slices.MinFunc(set, func(a, b vault) int { return cmp.Compare(a.Start, b.Start) }).Start
}

// Contracts returns the contracts of all vaults.
func (set Set) Contracts() (contracts []common.Address) {
	for _, v := range set {
		for _, source := range v.Spec.Sources {
			if !slices.Contains(contracts, source.Address) {
				contracts = append(contracts, source.Address)
			}
		}
	}
	return contracts
}

// SamplesPerBlock returns the number of NAV samples per block that the vaults need, by their newest mappings.
func (set Set) SamplesPerBlock() (samples float64) {
	for _, v := range set {
		d, err := mapping.Describe(v.Spec.Sources, v.Spec.Texts)
		if err != nil || !d.Samples() {
			continue
		}
		newest := slices.MaxFunc(d.Ranges, func(a, b mapping.Range) int { return cmp.Compare(a.From, b.From) })
		if every := newest.Mapping.SampleEvery; every > 0 {
			samples += 1 / float64(every)
		}
	}
	return samples
}

// Encode returns the vault as the argument of a command that adds it. The error names every mistake.
func (v Config) Encode() (string, error) {
	if err := errors.Join(Faults([]Config{v})...); err != nil {
		return "", err
	}
	all, err := Read([]Config{v})
	if err != nil {
		return "", err
	}
	argument, err := json.Marshal(all[0])
	return string(argument), err
}

// decodeVault is the inverse of Encode.
func decodeVault(argument []byte) (vault, error) {
	v := vault{Spec: &Spec{}}
	if err := json.Unmarshal(argument, &v); err != nil {
		return vault{}, err
	}
	if err := errors.Join(v.tooLong()...); err != nil {
		return vault{}, err
	}
	if _, err := mapping.Describe(v.Sources, v.Texts); err != nil {
		return vault{}, err
	}
	itself := slices.ContainsFunc(v.Sources, func(s mapping.Source) bool { return s.Address == v.Address })
	if !itself || v.Start == 0 || len(v.Name) > maxLabel {
		return vault{}, errors.New("it is no vault")
	}
	return v, nil
}

// specOf returns the spec of a vault: the configured one or, for a vault that is only in the log, that of its record.
func (r *Registrar) specOf(v vault) *Spec {
	if v.Spec != nil {
		return v.Spec
	}
	known := r.writer.State.Records[v.Address]
	out := &Spec{Decimals: -1, AssetDecimals: -1, Sources: r.sourcesOf(v.Address)}
	if token := known.GetAsset(); token != nil { // what its amounts mean stays, and may have been configured
		asset := common.BytesToAddress(token.GetAddress())
		out.Decimals, out.Asset, out.AssetDecimals = int(known.GetDecimals()), &asset, int(token.GetDecimals())
	}
	for _, m := range known.GetMappings() {
		out.Texts = append(out.Texts,
			mapping.Text{From: m.GetFirst(), To: m.GetLast(), Preset: m.GetPreset(), Text: m.GetText()})
	}
	return out
}

func (r *Registrar) sourcesOf(address common.Address) []mapping.Source {
	return r.writer.State.Mapped.Of(address).Description.Sources
}

func sameSources(a, b []mapping.Source) bool {
	return slices.EqualFunc(sorted(a), sorted(b), func(x, y mapping.Source) bool {
		return x.Role == y.Role && x.Address == y.Address && slices.Equal(x.Filters, y.Filters)
	})
}

func sorted(sources []mapping.Source) []mapping.Source {
	return slices.SortedFunc(slices.Values(sources),
		func(a, b mapping.Source) int { return strings.Compare(a.Role, b.Role) })
}

// changed reports whether the configuration of a vault differs from the log in a way that a new record can express.
// Contracts cannot change: the log lacks the earlier logs of another one.
func (r *Registrar) changed(v vault) bool {
	known := r.writer.State.Records[v.Address]
	if v.Spec == nil || !sameSources(v.Spec.Sources, r.sourcesOf(v.Address)) {
		return false
	}
	want, err := v.Spec.record(v.Address, v.Start, v.Name)
	// What the configuration leaves to the contracts is that of the log.
	want.Aliases, want.Decimals, want.Asset = known.GetAliases(), known.GetDecimals(), known.GetAsset()
	if err != nil || !mapping.SameMapping(want, known) {
		return err == nil
	}
	differ := v.Spec.Symbol != "" && v.Spec.Symbol != known.GetSymbol() ||
		v.Spec.Decimals >= 0 && uint32(v.Spec.Decimals) != known.GetDecimals() ||
		v.Spec.AssetSymbol != "" && v.Spec.AssetSymbol != known.GetAsset().GetSymbol() ||
		v.Spec.AssetDecimals >= 0 && uint32(v.Spec.AssetDecimals) != known.GetAsset().GetDecimals()
	return differ || v.Spec.Asset != nil && !bytes.Equal(v.Spec.Asset[:], known.GetAsset().GetAddress())
}
