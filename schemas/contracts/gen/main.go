// Command gen writes the Go bindings of the reference contracts (deploy/devchain/reference/*.go) from abi/*.json and
// abi/*.bin. It is the last step of generate.sh, and runs in schemas/contracts.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi/abigen"
)

// aliases names the referral overloads, which abigen would otherwise number.
var aliases = map[string]string{
	"deposit0":           "depositReferral",
	"requestWithdrawal0": "requestWithdrawalReferral",
}

func main() {
	outputs := map[string]string{
		"MockAsset":              "mock_asset.go",
		"ReferenceVault":         "reference_vault.go",
		"ReferenceDepositRouter": "reference_deposit_router.go",
	}
	for contract, file := range outputs {
		if err := bind(contract, filepath.Join("../../deploy/devchain/reference", file)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func bind(contract, file string) error {
	abi, err := os.ReadFile(filepath.Join("abi", contract+".json"))
	if err != nil {
		return fmt.Errorf("read the ABI of %s, run generate.sh first: %w", contract, err)
	}
	bin, err := os.ReadFile(filepath.Join("abi", contract+".bin"))
	if err != nil {
		return fmt.Errorf("read the bytecode of %s, run generate.sh first: %w", contract, err)
	}
	code, err := abigen.Bind([]string{contract}, []string{string(abi)}, []string{strings.TrimSpace(string(bin))}, nil,
		"reference", nil, aliases)
	if err != nil {
		return fmt.Errorf("generate the binding of %s: %w", contract, err)
	}
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		return fmt.Errorf("write the binding of %s: %w", contract, err)
	}
	return nil
}
