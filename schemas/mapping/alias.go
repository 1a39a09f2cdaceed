package mapping

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// MaxAliases is the maximum number of aliases of a vault. Its record has all of them, so each change repeats them: 2000
// take 80 kB, which fit into a Kafka batch with the largest mappings.
const MaxAliases = 2000

// AttributionWord parses an attribution value into the word that logs have: a decimal number, an address, or 32 bytes.
func AttributionWord(text string) (common.Hash, error) {
	word, err := FilterWord(text)
	switch number, ok := new(big.Int).SetString(text, 10); {
	case err == nil && strings.HasPrefix(text, "0x"):
	case ok && strings.Trim(text, "0123456789") == "" && number.BitLen() <= 256:
		word = common.BigToHash(number)
	default:
		return common.Hash{}, fmt.Errorf("%q is not an attribution value: it is a decimal number, an address, or 0x and "+
			"64 hex digits", text)
	}
	if word == (common.Hash{}) {
		return word, fmt.Errorf("%q is the attribution of a log that names no partner: it can have no alias", text)
	}
	return word, nil
}

// AttributionText formats a value in the shortest form that AttributionWord parses.
func AttributionText(word common.Hash) string {
	switch {
	case empty(word[:24]):
		return word.Big().String()
	case empty(word[:12]):
		return common.BytesToAddress(word[:]).Hex()
	}
	return word.Hex()
}

// AliasOf returns the partner of a value by a vault record; 0 for none.
func AliasOf(v *event.Vault, value common.Hash) uint32 {
	if at, found := findAlias(v, value); found {
		return v.GetAliases()[at].GetPartnerId()
	}
	return 0
}

// WithAlias returns a vault record with the alias of a value set to a partner; partner 0 removes it.
func WithAlias(v *event.Vault, value common.Hash, partner uint32) *event.Vault {
	out := proto.CloneOf(v)
	at, found := findAlias(v, value)
	if found {
		out.Aliases = slices.Delete(out.Aliases, at, at+1)
	}
	if partner != 0 {
		out.Aliases = slices.Insert(out.Aliases, at, &event.Alias{Value: value.Bytes(), PartnerId: partner})
	}
	return out
}

// findAlias returns the index of a value's alias in a record, or the index at which to insert it.
func findAlias(v *event.Vault, value common.Hash) (at int, found bool) {
	return slices.BinarySearchFunc(v.GetAliases(), value[:], func(a *event.Alias, value []byte) int {
		return bytes.Compare(a.GetValue(), value)
	})
}

func aliasesOf(v *event.Vault) (map[common.Hash]uint32, error) {
	if len(v.GetAliases()) == 0 {
		return nil, nil
	}
	out := make(map[common.Hash]uint32, len(v.GetAliases()))
	for _, a := range v.GetAliases() {
		if len(a.GetValue()) != common.HashLength || a.GetPartnerId() == 0 {
			return nil, fmt.Errorf("the record of vault 0x%x has an alias of %d bytes for partner %d", v.GetAddress(),
				len(a.GetValue()), a.GetPartnerId())
		}
		out[common.Hash(a.GetValue())] = a.GetPartnerId()
	}
	return out, nil
}

// WithAliases returns the vault with attribution values that name partners. They must not be modified.
func (v *Vault) WithAliases(aliases map[common.Hash]uint32) *Vault {
	out := *v
	out.aliases = aliases
	return &out
}

// AliasesOf returns the attribution values that name a partner, sorted.
func (v *Vault) AliasesOf(partner uint32) (out []common.Hash) {
	for value, of := range v.aliases {
		if of == partner {
			out = append(out, value)
		}
	}
	slices.SortFunc(out, common.Hash.Cmp)
	return out
}

// resolve sets the partners of effects, and of a fault's effect, from their attributions.
func (v *Vault) resolve(effects []Effect, fault *Fault) {
	for i := range effects {
		v.resolveOne(&effects[i])
	}
	if fault != nil && fault.Large != nil {
		v.resolveOne(&fault.Large.Effect)
	}
}

func (v *Vault) resolveOne(e *Effect) {
	if e.Has&Attribution == 0 {
		return
	}
	if partner, found := v.aliases[e.Attribution]; found {
		e.Partner, e.Has = partner, e.Has|Partner
	}
}

// Attributes reports whether a deposit or request of the vault can have an attribution.
func (d *Description) Attributes() bool {
	return slices.ContainsFunc(d.Ranges, func(r Range) bool {
		return slices.ContainsFunc(r.Mapping.rules, func(r rule) bool { return r.names()&Attribution != 0 })
	})
}

// names returns the fields by which a rule can name a partner, itself or by its companion.
func (r *rule) names() (fields Fields) {
	for i := range r.effects {
		fields |= r.possibly(&r.effects[i])
	}
	return fields & (Partner | Attribution)
}
