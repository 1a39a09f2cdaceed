package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/navlog/navlog/schemas/mapping"
)

// Mapping reads a mapping, by the name of a preset or of a file, or the description of a vault; the other one is nil.
// It prints the mistakes.
func Mapping(out io.Writer, name string) (*mapping.Mapping, *mapping.Description, error) {
	text, err := mappingText(name)
	if err != nil {
		return nil, nil, err
	}
	m, d, err := mapping.ParseFile(name, text, Preset)
	if err != nil {
		return nil, nil, MappingMistakes(out, name, err)
	}
	return m, d, nil
}

// Preset returns the mapping that the description of a vault names: a preset or a file.
func Preset(name string) (*mapping.Mapping, error) {
	text, err := mappingText(name)
	if err != nil {
		return nil, err
	}
	m, err := mapping.Parse(name, text)
	if mistakes, ok := errors.AsType[mapping.Mistakes](err); ok {
		err = errors.New(mistakes[0].String())
	}
	return m, err
}

func mappingText(name string) ([]byte, error) {
	text, err := mapping.PresetText(name)
	if err == nil {
		return text, nil
	}
	if _, failed := os.Stat(name); failed != nil && filepath.Ext(name) == "" {
		return nil, Usage.With(fmt.Errorf("there is no such file, and it is an %w", err))
	}
	return ReadMapping(name)
}

// ReadMapping reads a file with a mapping.
func ReadMapping(file string) ([]byte, error) {
	text, err := mapping.ReadFile(file)
	if err != nil {
		return nil, Usage.With(err)
	}
	return text, nil
}

// MappingMistakes prints the mistakes, one per line, and returns an error with their number.
func MappingMistakes(out io.Writer, file string, err error) error {
	mistakes, ok := errors.AsType[mapping.Mistakes](err)
	if !ok {
		return Configuration.With(err)
	}
	for _, m := range mistakes {
		Fprintf(out, "%s\n", m)
	}
	return Configuration.With(fmt.Errorf("mistakes in %s: %d", file, len(mistakes)))
}
