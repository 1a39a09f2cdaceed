package contracts

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/accounts/abi"
)

//go:embed abi/ReferenceVault.json
var vaultABI string

// VaultABI returns the ABI of a reference vault, whose views navlog calls. A vault with another mapping has some of
// them, or none.
var VaultABI = sync.OnceValue(func() *abi.ABI {
	parsed, err := abi.JSON(strings.NewReader(vaultABI))
	if err != nil {
		panic(fmt.Errorf("read the ABI of a reference vault, which is part of the program: %w", err))
	}
	return &parsed
})
