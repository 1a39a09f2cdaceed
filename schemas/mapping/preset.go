package mapping

import (
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// Presets returns the names of the mappings that navlog ships, in alphabetical order.
func Presets() []string {
	entries, _ := presetFiles.ReadDir("presets") // the files are embedded
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(out)
	return out
}

// PresetText returns the YAML of a preset.
func PresetText(name string) ([]byte, error) {
	if !slices.Contains(Presets(), name) {
		return nil, fmt.Errorf("unknown preset %q: the presets are %s", name, series(Presets(), "and"))
	}
	return presetFiles.ReadFile("presets/" + name + ".yaml")
}

// Preset returns a mapping that navlog ships.
func Preset(name string) (*Mapping, error) {
	text, err := PresetText(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+".yaml", text)
}

// ReadFile reads a file with a mapping, at most as much as one can have.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the mapping: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("read the mapping: %w", err)
	}
	return text, nil
}

// referenceMapping is the preset of the reference contracts.
var referenceMapping = sync.OnceValue(func() *Mapping {
	m, err := Preset("reference")
	if err != nil {
		panic(err) // a test parses every embedded preset
	}
	return m
})

// Reference returns the compiled preset of the reference contracts.
func Reference() *Vault { return reference(common.Address{}).Vault }
