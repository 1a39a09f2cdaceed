package vaults

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Max is the number of vaults that one deployment may index.
const Max = 6

var addressText = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

// Config is one vault.
type Config struct {
	Address string `yaml:"address" env:"ADDRESS"`
	// StartBlock is the first block that can hold a log of the vault. It may be raised later without effect, and never
	// lowered.
	StartBlock uint64 `yaml:"startBlock" env:"START_BLOCK"`
	// Name overrides the contract's name() for display: UTF-8 of at most 256 bytes. A change is recorded at the next
	// start.
	Name string `yaml:"name" env:"NAME"`
	// Mapping defines what the vault's logs mean: the name of a preset, or the path of a file, which contains a slash
	// or ends with .yaml; default "reference".
	Mapping string `yaml:"mapping" env:"MAPPING"`
	// Mappings replace Mapping if it changed over time: each applies to its blocks.
	Mappings []MappingConfig `yaml:"mappings" envPrefix:"MAPPINGS_"`
	// Sources are the contracts of the vault by their roles in the mapping. The vault itself is the source "vault"
	// unless another role names it.
	Sources map[string]SourceConfig `yaml:"sources" env:"-"`
	// Symbol, Decimals and Asset replace what the contracts return, or supply what they do not return.
	Symbol   string      `yaml:"symbol" env:"SYMBOL"`
	Decimals *uint8      `yaml:"decimals" env:"DECIMALS"`
	Asset    AssetConfig `yaml:"asset" envPrefix:"ASSET_"`
}

// MappingConfig is the mapping of a block range, both ends included.
type MappingConfig struct {
	Mapping string  `yaml:"mapping" env:"MAPPING"`
	From    uint64  `yaml:"from" env:"FROM"`
	To      *uint64 `yaml:"to" env:"TO"` // absent: without end
}

// SourceConfig is a contract of a vault. If several vaults share the contract, it has the topics of this vault's logs:
// each an address, or 32 bytes.
type SourceConfig struct {
	Address string `yaml:"address"`
	Topic1  string `yaml:"topic1"`
	Topic2  string `yaml:"topic2"`
	Topic3  string `yaml:"topic3"`
}

// UnmarshalText reads just the address, in place of a mapping in YAML.
func (s *SourceConfig) UnmarshalText(text []byte) error {
	*s = SourceConfig{Address: string(text)}
	return nil
}

// AssetConfig is the token that a vault holds.
type AssetConfig struct {
	Address  string `yaml:"address" env:"ADDRESS"`
	Symbol   string `yaml:"symbol" env:"SYMBOL"`
	Decimals *uint8 `yaml:"decimals" env:"DECIMALS"`
}

// Faults reports every mistake in chain.vaults.
func Faults(all []Config) (faults []error) {
	if n := len(all); n < 1 || n > Max {
		faults = append(faults, fmt.Errorf("chain.vaults has %d vaults and must have 1 to %d", n, Max))
	}
	seen := map[string]int{}
	for i, v := range all {
		if !addressText.MatchString(v.Address) {
			faults = append(faults, fmt.Errorf("chain.vaults[%d].address is %q and must be 0x and 40 hex digits", i, v.Address))
			continue
		}
		key := strings.ToLower(v.Address)
		if first, twice := seen[key]; twice {
			faults = append(faults, fmt.Errorf("chain.vaults[%d].address is the same as chain.vaults[%d].address (%s)", i, first,
				v.Address))
			continue
		}
		seen[key] = i
		if len(v.Name) > maxLabel || !utf8.ValidString(v.Name) {
			faults = append(faults, fmt.Errorf("chain.vaults[%d].name has %d bytes and must be UTF-8 of at most %d", i,
				len(v.Name), maxLabel))
		}
	}
	_, others := read(all)
	return append(faults, others...)
}
