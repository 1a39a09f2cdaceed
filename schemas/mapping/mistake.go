package mapping

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mistake is one mistake in a mapping, and its position.
type Mistake struct {
	File         string
	Line, Column int
	Text         string
}

// String returns "file:line:column: sentence".
func (m Mistake) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text)
}

// Mistakes are all mistakes in a mapping, in the order of the file.
type Mistakes []Mistake

// Error returns one line for each mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

type checker struct {
	file     string
	mistakes Mistakes
	// recorded means that a record of the log may have the text: what earlier versions accepted is no mistake.
	recorded bool
	// found is the number of mistakes, of which mistakes has the first ones.
	found int
}

// Limits of what is reported: a mistake can repeat the names of all parameters of an event, so the mistakes of a small
// file could fill the memory.
const (
	maxMistakes    = 100
	maxMistakeText = 500 // bytes
)

// at reports a mistake in a node; offset is the position of the mistake in the node's value, in bytes. Of more than
// maxMistakes it reports that there are more.
func (c *checker) at(n *yaml.Node, offset int, format string, a ...any) {
	if c.found++; c.found > maxMistakes+1 {
		return
	}
	column := n.Column
	if n.Kind == yaml.ScalarNode {
		switch {
		case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && offset > 0:
			column += 1 + offset
		default:
			column += offset
		}
	}
	text := fmt.Sprintf(format, a...)
	if c.found > maxMistakes {
		text = fmt.Sprintf("there are more than %d mistakes, and the others are not shown", maxMistakes)
	} else if len(text) > maxMistakeText {
		text = strings.ToValidUTF8(text[:maxMistakeText], "") + "…"
	}
	c.mistakes = append(c.mistakes, Mistake{c.file, n.Line, column, text})
}

// result returns the mistakes as an error, in the order of the file; nil if there are none.
func (c *checker) result() error {
	if len(c.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(c.mistakes, func(a, b Mistake) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return c.mistakes
}

type entry struct{ key, value *yaml.Node }

// entries returns the entries of a YAML mapping. It reports another kind of node, a duplicate key, and a key that is
// not among allowed; nil allows every key.
func (c *checker) entries(n *yaml.Node, what string, allowed []string) []entry {
	if n.Kind != yaml.MappingNode {
		c.at(n, 0, "%s must be a mapping of keys to values", what)
		return nil
	}
	var out []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode:
			c.at(k, 0, "a key of %s must be one word", what)
		case seen[k.Value]:
			c.at(k, 0, "the key `%s` appears twice in %s", k.Value, what)
		case allowed != nil && !slices.Contains(allowed, k.Value) &&
			(strings.Contains(k.Value, ")") || strings.HasPrefix(k.Value, "$")):
			c.at(k, 0, "%q is not a key of %s: inside { } an expression with a comma must be in quotes", k.Value, what)
		case allowed != nil && !slices.Contains(allowed, k.Value):
			c.at(k, 0, "unknown key `%s` in %s; the keys are %s", k.Value, what, series(allowed, "and"))
		default:
			seen[k.Value] = true
			out = append(out, entry{k, v})
		}
	}
	return out
}

func (c *checker) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		c.at(n, 0, "%s must be a list", what)
		return nil
	}
	return n.Content
}

func (c *checker) word(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null" {
		c.at(n, 0, "%s must be one value", what)
		return "", false
	}
	return n.Value, true
}

func named(entries []entry, key string) *entry {
	for i := range entries {
		if entries[i].key.Value == key {
			return &entries[i]
		}
	}
	return nil
}
