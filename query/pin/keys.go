package pin

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Keys name the rows that a question is about: {name} in its text, without a type. They alone of
// what a question asks with are written into it, for only of literals the engine sees which rows to
// read; so they are made of addresses and numbers, and of nothing else.
type Keys struct{ literals []string }

// Address adds an address.
func (k *Keys) Address(address common.Address) { k.literals = append(k.literals, literal(address)) }

// Number adds a number.
func (k *Keys) Number(n uint64) { k.literals = append(k.literals, strconv.FormatUint(n, 10)) }

// Numbered adds what a vault has given a number.
func (k *Keys) Numbered(vault common.Address, n uint64) {
	k.literals = append(k.literals, fmt.Sprintf("(%s,%d)", literal(vault), n))
}

// in writes the keys into a question.
func (k *Keys) in(question, name string) string {
	return strings.ReplaceAll(question, "{"+name+"}", strings.Join(k.literals, ","))
}

func literal(address common.Address) string { return "x'" + hex.EncodeToString(address[:]) + "'" }
