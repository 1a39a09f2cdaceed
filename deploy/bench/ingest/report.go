package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const mib = 1 << 20

// row prints a figure for human readers.
func row(name, format string, a ...any) {
	fmt.Printf("  %-22s %s\n", name, fmt.Sprintf(format, a...))
}

// each lists the figures with their names, sorted by name.
func each[V any](figures map[string]V, format string) string {
	list := make([]string, 0, len(figures))
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		list = append(list, fmt.Sprintf(format, name, figures[name]))
	}
	return strings.Join(list, ", ")
}
