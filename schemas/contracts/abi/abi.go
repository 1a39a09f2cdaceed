// Package abi provides the compiled contracts of ../solidity.
package abi

import (
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
)

//go:embed *.json *.bin
var files embed.FS

// Contract returns the ABI of a contract and its creation code. It panics if there is no such contract.
func Contract(name string) (abi.ABI, []byte) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		panic(err) // the files are embedded
	}
	code, err := files.ReadFile(name + ".bin")
	if err != nil {
		panic(err)
	}
	parsed, err := abi.JSON(strings.NewReader(string(text)))
	if err != nil {
		panic(fmt.Errorf("read the ABI of %s: %w", name, err))
	}
	bytes, err := hex.DecodeString(strings.TrimSpace(string(code)))
	if err != nil {
		panic(fmt.Errorf("read the code of %s: %w", name, err))
	}
	return parsed, bytes
}
