// Package openapi is the contract of the HTTP API: an OpenAPI 3.1 document, with the webhooks that partners receive. It
// is written by hand; the tests of package query validate every response against it, and its examples come from actual
// responses.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var document []byte

// YAML returns the document as written. The caller must not change it.
func YAML() []byte { return document }

// JSON returns the same document as JSON, with its fields in the order of the YAML. The caller must not change it.
var JSON = sync.OnceValue(func() []byte {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		panic(err) // it is embedded, and a test parses it
	}
	var b bytes.Buffer
	if err := write(&b, root.Content[0]); err != nil {
		panic(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
})

// write writes a node as JSON. A map would lose the order of the fields.
func write(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return write(b, n.Alias)
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			name, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			b.Write(append(name, ':'))
			if err := write(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, child); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	b.Write(text)
	return nil
}
