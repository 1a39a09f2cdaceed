package readtest

import (
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

const ChainID = 31337

var (
	VaultA  = common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	VaultB  = common.HexToAddress("0xb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2")
	VaultC  = common.HexToAddress("0xc3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3")
	Router  = common.HexToAddress("0x4444444444444444444444444444444444444444")
	Alice   = common.HexToAddress("0x1111111111111111111111111111111111111111")
	Bob     = common.HexToAddress("0x2222222222222222222222222222222222222222")
	Carol   = common.HexToAddress("0x3333333333333333333333333333333333333333")
	Unknown = common.HexToAddress("0x9999999999999999999999999999999999999999")
)

// VaultRecord returns the record of a vault.
func VaultRecord(address common.Address, name string, start uint64) Fact {
	return Fact{Kind: Vault, Meta: &event.Vault{
		Address: address.Bytes(), StartBlock: start, Name: name, Symbol: "nv" + name, Decimals: 18,
		Asset: &event.Token{Address: common.HexToAddress("0x5555555555555555555555555555555555555555").Bytes(),
			Symbol: "USDX", Decimals: 6},
	}}
}

// PresetRecord returns the record of a vault with a preset, whose contracts are the vault itself and more.
func PresetRecord(
	t testing.TB, address common.Address, name string, start uint64, preset string, more ...mapping.Source,
) Fact {
	t.Helper()
	text, err := mapping.PresetText(preset)
	if err == nil {
		text, err = mapping.Canonical(preset, text)
	}
	f := VaultRecord(address, name, start)
	if err == nil {
		err = mapping.Record(f.Meta, append([]mapping.Source{{Role: "vault", Address: address}}, more...),
			[]mapping.Text{{To: math.MaxUint64, Preset: preset, Text: text}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BlockRecord returns the record of a block.
func BlockRecord(number uint64) Fact { return Fact{Kind: Block, Block: number} }

// Tx returns a transaction hash.
func Tx(n byte) (h common.Hash) { h[0], h[31] = 0xee, n; return h }

// SmallChain returns a hand-written log that contains every state: blocks 3 to 11, with a reorganisation of 10 and
// 11.
func SmallChain() *Log {
	l := NewLog(ChainID)
	a, b, block := VaultA, VaultB, BlockRecord
	l.Append(VaultRecord(b, "Beta", 2))
	l.Append(VaultRecord(a, "Alpha", 1))
	l.Append(
		Fact{Kind: Nav, Vault: a, Price: 1_000_000_000_000_000_000, Assets: 1000, Supply: 1000, Block: 3, Index: 0,
			Tx: Tx(1)}, block(3))
	l.Append(
		Fact{Kind: Deposit, Vault: a, User: Alice, Other: Router, Partner: 7, ID: 1, Assets: 100, Shares: 99, Block: 5,
			Index: 2, Tx: Tx(2)},
		Fact{Kind: Deposit, Vault: a, User: Bob, Other: Bob, ID: 2, Assets: 250, Shares: 249, Block: 5, Index: 4, Tx: Tx(3)},
		block(5))
	l.Append(Fact{Kind: Deposit, Vault: b, User: Alice, Other: Router, Partner: 8, ID: 1, Assets: 70, Shares: 70, Block: 6,
		Index: 0, Tx: Tx(4)}, block(6))
	l.Append(
		Fact{Kind: Request, Vault: a, User: Alice, Other: Carol, ID: 0, Assets: 44, Shares: 40, Expires: uint64(BlockTime(9)),
			Block: 7, Index: 0, Tx: Tx(5)},
		Fact{Kind: Request, Vault: a, User: Bob, Other: Bob, Partner: 7, ID: 1, Assets: 60, Shares: 55, Block: 7, Index: 1,
			Tx: Tx(6)}, block(7))
	l.Append(
		Fact{Kind: Funding, Vault: a, User: Bob, ID: 1, Assets: 61, Block: 8, Index: 0, Tx: Tx(7)},
		Fact{Kind: Sweep, Vault: a, ID: 1, To: 1, Assets: 100, Block: 8, Index: 3, Tx: Tx(8)}, block(8))
	l.Append(
		Fact{Kind: Request, Vault: a, User: Carol, Other: Carol, ID: 2, Assets: 10, Shares: 9, Block: 9, Index: 0, Tx: Tx(9)},
		Fact{Kind: Request, Vault: b, User: Alice, Other: Alice, ID: 0, Assets: 30, Shares: 30,
			Expires: uint64(BlockTime(99)), Block: 9, Index: 1, Tx: Tx(10)},
		Fact{Kind: Request, Vault: a, User: Bob, Other: Bob, ID: 3, Assets: 5, Shares: 5, Block: 9, Index: 2, Tx: Tx(11)},
		block(9))
	ten := []Fact{
		{Kind: Cancel, Vault: a, User: Carol, ID: 2, Block: 10, Index: 0, Tx: Tx(12)},
		{Kind: Funding, Vault: a, User: Bob, ID: 3, Assets: 6, Block: 10, Index: 1, Tx: Tx(13)},
		{Kind: Claim, Vault: a, User: Bob, Other: Bob, ID: 3, Assets: 6, Block: 10, Index: 2, Tx: Tx(14)},
		{Kind: Nav, Vault: a, Price: 1_050_000_000_000_000_000, Assets: 1050, Supply: 1000, Block: 10, Index: 3, Tx: Tx(15)},
		block(10)}
	l.Append(ten...)
	l.Append(
		Fact{Kind: Deposit, Vault: a, User: Unknown, Other: Router, Partner: 7, ID: 3, Assets: 999_999, Shares: 1, Block: 11,
			Index: 0, Tx: Tx(16)},
		Fact{Kind: Funding, Vault: b, User: Alice, ID: 0, Assets: 30, Block: 11, Index: 1, Tx: Tx(17)}, block(11))
	// Back to block 9, then the same block 10 again and a different block 11.
	l.Retract(9)
	for _, f := range ten {
		l.Add(f, 0)
	}
	l.Append(
		Fact{Kind: Deposit, Vault: a, User: Carol, Other: Router, Partner: 7, ID: 3, Assets: 30, Shares: 29, Block: 11,
			Index: 0, Tx: Tx(18)}, block(11))
	return l
}
