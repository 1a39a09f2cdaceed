package ask

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

// NumberOrNil returns a number of an effect, or nil if its log does not contain the number. Tables have 0 in both
// cases, so 0 is a number only if the vault's mapping takes the field from every such log.
func (p *Pin) NumberOrNil(vault common.Address, kind mapping.Kind, field mapping.Fields, block uint64,
	number string) *string {
	if number == "0" && p.mayLack(vault, kind, field, block) {
		return nil
	}
	return &number
}

// AddressOrNil is NumberOrNil for an address.
func (p *Pin) AddressOrNil(vault common.Address, kind mapping.Kind, block uint64, address common.Address) *string {
	if address == (common.Address{}) && p.mayLack(vault, kind, mapping.Other, block) {
		return nil
	}
	return new(address.Hex())
}

func (p *Pin) mayLack(vault common.Address, kind mapping.Kind, field mapping.Fields, block uint64) bool {
	v, ok := p.Vault(vault)
	return ok && v.Mapped.Description.MayLack(kind, field, block)
}
