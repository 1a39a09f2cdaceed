package mapping

import (
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestDocs checks that the examples of docs/mappings.md and the files of docs/mappings have no mistakes, and that the
// page links every file and names every effect and every field.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/mappings.md")
	must(t, err)
	page := string(text)
	examples := strings.Split(page, "```yaml\n")[1:]
	checked := 0
	for _, example := range examples {
		example, _, _ = strings.Cut(example, "```")
		if strings.HasPrefix(example, "chain:") {
			continue // an example of the configuration
		}
		checked++
		if _, _, err := ParseFile("docs/mappings.md", []byte(example), Preset); err != nil {
			t.Error(err)
		}
	}
	if checked < 2 {
		t.Fatalf("the page has %d examples", checked)
	}
	files, err := filepath.Glob("../../docs/mappings/*.yaml")
	must(t, err)
	if len(files) < 2 {
		t.Fatalf("docs/mappings has %d files", len(files))
	}
	for _, file := range files {
		example, err := os.ReadFile(file)
		must(t, err)
		m, _, err := ParseFile(file, example, Preset)
		must(t, err)
		for i := range m.rules {
			if m.rules[i].names()&Partner != 0 {
				t.Errorf("%s: line %d: the protocol does not know navlog's partner ids: it needs an attribution, and aliases",
					file, m.rules[i].node.Line)
			}
		}
		if name := filepath.Base(file); !strings.Contains(page, "(mappings/"+name+")") {
			t.Errorf("the page has no link to %s", name)
		}
	}
	for k := Deposit; k < kindCount; k++ {
		if !strings.Contains(page, "`"+k.String()+"`") {
			t.Errorf("the page has no effect `%s`", k)
		}
		for _, f := range effects[k].fields {
			if !strings.Contains(page, "`"+f.name+"`") {
				t.Errorf("the page has no field `%s`", f.name)
			}
		}
	}
}

// example is a mapping of docs/mappings.
type example struct {
	*testing.T
	mapping *Mapping
}

func exampleOf(t *testing.T, name string) example {
	t.Helper()
	text, err := os.ReadFile("../../docs/mappings/" + name)
	must(t, err)
	m, err := Parse(name, text)
	must(t, err)
	return example{t, m}
}

// from returns a log as emitted by a source.
func (e example) from(source string, l Log) Log {
	e.Helper()
	role, ok := e.mapping.Role(source)
	if l.Role = role; !ok {
		e.Fatalf("no source %s", source)
	}
	return l
}

// has checks the effects of a transaction, with alice and bob by their names.
func (e example) has(tx []Log, want ...string) {
	e.Helper()
	var got []string
	for _, effect := range mapped(e, e.mapping.Compile(), tx...) {
		words := effect.Kind.String()
		for _, v := range effect.Values() {
			words += " " + v.Name + "=" + v.Text
		}
		got = append(got, strings.NewReplacer(alice.Hex(), "alice", bob.Hex(), "bob").Replace(words))
	}
	if !slices.Equal(got, want) {
		e.Errorf("the effects are\n%q, want\n%q", got, want)
	}
}

// TestRenzo checks the effects of logs as the contracts of Renzo emit them, by the example of the page: only ETH counts,
// and a claim names its request in a struct.
func TestRenzo(t *testing.T) {
	t.Parallel()
	m := exampleOf(t, "renzo.yaml")
	native, token := common.HexToAddress("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"), common.Address{1}
	deposit := func(of common.Address) Log {
		return m.from("manager", emitted("Deposit(address,address,uint256,uint256,uint256)", 0, alice, of, 100, 97, 12))
	}
	// The topic is that of the chain, as published by an indexer of this event.
	if topic := deposit(token).Topics[0]; topic !=
		common.HexToHash("0x4e2ca0515ed1aef1395f66b5303bb5d6f1bf9d61a353fa53f73f8ac9973fa9f6") {
		t.Errorf("the topic of deposits is %s", topic)
	}
	claim := func(of common.Address) Log {
		return m.from("queue", emitted("WithdrawRequestClaimed((address,uint256,uint256,uint256,uint256))", 0, of, 5, 39,
			40, 1700000000))
	}
	m.has([]Log{
		deposit(common.Address{}), deposit(token),
		m.from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256)", 1, 4, bob,
			native, 20, 19, 0)),
		m.from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256,bool,uint256)", 1,
			5, alice, native, 41, 40, 0, 1, 7)),
		m.from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256,bool,uint256)", 1,
			6, alice, token, 41, 40, 0, 1, 7)),
		claim(native), claim(token),
	},
		"deposit key=1677721602 owner=alice sender=alice assets=100 shares=97 attribution="+common.Hash{31: 12}.Hex(),
		"requested key=4 owner=bob receiver=bob shares=19 estimate=20",
		"requested key=5 owner=alice receiver=alice shares=40 estimate=41", "claimed key=5 assets=39")
}

// TestLido checks the effects of logs in the order in which the contracts of Lido emit them, by the example of the page:
// the shares of a deposit are in the log of their mint, and requests are funded up to an id.
func TestLido(t *testing.T) {
	t.Parallel()
	m := exampleOf(t, "lido.yaml")
	minted := func(to common.Address, shares int) Log {
		return emitted("TransferShares(address,address,uint256)", 2, common.Address{}, to, shares)
	}
	submitted := func(sender common.Address, assets int, referral common.Address) Log {
		return emitted("Submitted(address,uint256,address)", 1, sender, assets, referral)
	}
	m.has([]Log{submitted(alice, 100, bob), minted(alice, 80), submitted(bob, 50, common.Address{}),
		emitted("TransferShares(address,address,uint256)", 2, alice, bob, 7), minted(bob, 40)},
		"deposit key=1677721602 owner=alice sender=alice assets=100 shares=80 attribution="+
			common.BytesToHash(bob[:]).Hex(), "deposit key=1677721602 owner=bob sender=bob assets=50 shares=40")
	queue := func(l Log) Log { return m.from("queue", l) }
	requested := queue(emitted("WithdrawalRequested(uint256,address,address,uint256,uint256)", 3, 7, bob, alice, 60, 48))
	finalized := queue(emitted("WithdrawalsFinalized(uint256,uint256,uint256,uint256,uint256)", 2, 5, 7, 150, 120,
		1700000000))
	rebased := emitted("TokenRebased(uint256,uint256,uint256,uint256,uint256,uint256,uint256)", 1, 1700000000, 86400, 400,
		500, 401, 510, 1)
	claimed := queue(emitted("WithdrawalClaimed(uint256,address,address,uint256)", 3, 7, bob, alice, 59))
	m.has([]Log{requested, finalized, minted(bob, 1), rebased, claimed,
		queue(emitted("Transfer(address,address,uint256)", 3, alice, bob, 7))},
		"requested key=7 owner=alice shares=48 estimate=60 group=7", "settled assets=150 shares=120 count=3", "funded up_to_key=7",
		"valuation total_assets=510 total_supply=401", "claimed key=7 owner=bob receiver=alice assets=59")
	// The topics are those of the chain, as published by indexers of these events.
	for topic, l := range map[string]Log{
		"0xf0cb471f23fb74ea44b8252eb1881a2dca546288d9f6e90d1a0e82fe0ed342ab": requested,
		"0x197874c72af6a06fb0aa4fab45fd39c7cb61ac0992159872dc3295207da7e9eb": finalized,
		"0x6ad26c5e238e7d002799f9a5db07e81ef14e37386ae03496d7a7ef04713e145b": claimed,
		"0xff08c3ef606d198e316ef5b822193c489965899eb4e3c248cea1a4626c3eda50": rebased,
		"0x96a25c8ce0baabc1fdefd93e9ed25d8e092a3332f3aa9a41722b5697231d1d1a": submitted(alice, 1, bob),
	} {
		if l.Topics[0] != common.HexToHash(topic) {
			t.Errorf("the topic %s is not that of the chain, %s", l.Topics[0], topic)
		}
	}
}

// TestOrigin checks the effects of logs in the order in which the contracts of Origin emit them, by the example of the
// page: requests are funded by sums that have more than 64 bits, and the tokens of a strategy do not count.
func TestOrigin(t *testing.T) {
	t.Parallel()
	m := exampleOf(t, "origin.yaml")
	manager := func(signature string, indexed int, words ...any) Log {
		return m.from("manager", emitted(signature, indexed, words...))
	}
	strategy := common.Address{19: 0xa3}
	ether := func(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e18)) }
	requested := func(of common.Address, id int, amount, sum int64) Log {
		return manager("WithdrawalRequested(address,uint256,uint256,uint256)", 2, of, id, ether(amount), ether(sum))
	}
	m.has([]Log{
		manager("Mint(address,uint256)", 0, alice, 70), manager("Mint(address,uint256)", 0, strategy, 71),
		manager("Redeem(address,uint256)", 0, strategy, 72), manager("Redeem(address,uint256)", 0, bob, 73),
		emitted("Transfer(address,address,uint256)", 2, common.Address{}, alice, 70),
		requested(alice, 0, 30, 40_030), requested(bob, 1, 10, 40_040),
		manager("WithdrawalClaimable(uint256,uint256)", 0, ether(40_035), ether(9)),
		manager("WithdrawalClaimed(address,uint256,uint256)", 2, alice, 0, ether(30)),
	},
		"deposit key=1677721602 owner=alice sender=alice assets=70 shares=70",
		"instant owner=bob receiver=bob shares=73 assets=73",
		"requested key=0 owner=alice receiver=alice shares=30000000000000000000 estimate=30000000000000000000 group=40030000000000",
		"requested key=1 owner=bob receiver=bob shares=10000000000000000000 estimate=10000000000000000000 group=40040000000000",
		"funded up_to_group=40035000000000", "claimed key=0 owner=alice receiver=alice assets=30000000000000000000")
}

// TestEuler checks the effects of logs in the order in which the contracts of Euler emit them, by the example of the page:
// the vault's totals after a transaction, without shares for fees and bad debt, which are no deposit and no withdrawal.
func TestEuler(t *testing.T) {
	t.Parallel()
	m := exampleOf(t, "euler.yaml")
	none := common.Address{}
	transfer := func(from, to common.Address, shares int) Log {
		return emitted("Transfer(address,address,uint256)", 2, from, to, shares)
	}
	deposit := func(sender, owner common.Address, assets, shares int) Log {
		return emitted("Deposit(address,address,uint256,uint256)", 2, sender, owner, assets, shares)
	}
	withdraw := func(sender, receiver, owner common.Address, assets, shares int) Log {
		return emitted("Withdraw(address,address,address,uint256,uint256)", 3, sender, receiver, owner, assets, shares)
	}
	status := func(shares, debt, fees, cash int) Log {
		return emitted("VaultStatus(uint256,uint256,uint256,uint256,uint256,uint256,uint256)", 0, shares, debt, fees, cash,
			1, 2, 1700000000)
	}
	m.has([]Log{transfer(none, alice, 95), deposit(bob, alice, 100, 95), status(195, 150, 3, 60),
		transfer(alice, none, 10), withdraw(alice, bob, alice, 11, 10), status(185, 150, 3, 49)},
		"deposit key=1677721602 owner=alice sender=bob assets=100 shares=95", "valuation total_assets=210 total_supply=195",
		"instant owner=alice receiver=bob shares=10 assets=11", "valuation total_assets=199 total_supply=185")
	m.has([]Log{transfer(none, bob, 3), deposit(none, bob, 0, 3),
		emitted("ConvertFees(address,address,address,uint256,uint256)", 3, alice, bob, bob, 3, 0), status(185, 150, 0, 49)},
		"valuation total_assets=199 total_supply=185")
	m.has([]Log{emitted("Repay(address,uint256)", 1, alice, 40), withdraw(bob, none, none, 40, 0),
		emitted("DebtSocialized(address,uint256)", 1, alice, 40),
		emitted("Liquidate(address,address,address,uint256,uint256)", 2, bob, alice, common.Address{1}, 5, 6),
		status(185, 110, 0, 49)}, "valuation total_assets=159 total_supply=185")
	// The topic is that of the chain, as published by indexers of this event.
	if topic := status(1, 2, 3, 4).Topics[0]; topic !=
		common.HexToHash("0x80b61abbfc5f73cfe5cf93cec97a69ed20643dc6c6f1833b05a1560aa164e24c") {
		t.Errorf("the topic of the status is %s", topic)
	}
}

// TestUSDY checks the effects of logs as the contracts of Ondo emit them, by the example of the page: a deposit counts when
// its shares are claimed, and a redemption that has its price can be claimed.
func TestUSDY(t *testing.T) {
	t.Parallel()
	m := exampleOf(t, "usdy.yaml")
	manager := func(signature string, indexed int, words ...any) Log {
		return m.from("manager", emitted(signature, indexed, words...))
	}
	requested := manager("RedemptionRequested(address,bytes32,uint256)", 2, alice, common.Hash{31: 2}, 100)
	requested.Place = Place(101, 0)
	m.has([]Log{
		manager("MintRequested(address,bytes32,uint256,uint256,uint256)", 2, bob, common.Hash{31: 7}, 1010, 1000, 10),
		manager("PriceIdSetForDeposit(bytes32,uint256)", 2, common.Hash{31: 7}, 5),
		manager("ClaimableTimestampSet(uint256,bytes32)", 2, 1700000000, common.Hash{31: 7}),
		emitted("Transfer(address,address,uint256)", 2, common.Address{}, bob, 950),
		manager("MintCompleted(address,bytes32,uint256,uint256,uint256,uint256)", 2, bob, common.Hash{31: 7}, 950, 1000, 52, 5),
		requested,
		manager("RedemptionRequestedServicedOffChain(address,bytes32,uint256,bytes32)", 2, bob, common.Hash{31: 3}, 9,
			common.Hash{8}),
		manager("PriceIdSetForRedemption(bytes32,uint256)", 2, common.Hash{31: 2}, 6),
		manager("RedemptionCompleted(address,bytes32,uint256,uint256,uint256)", 2, alice, common.Hash{31: 2}, 100, 105, 53),
	},
		"deposit key=1677721602 owner=bob sender=bob assets=1000 shares=950",
		"requested key=1694498816 source_id="+common.Hash{31: 2}.Hex()+" owner=alice receiver=alice shares=100",
		"funded source_id="+common.Hash{31: 2}.Hex(),
		"claimed source_id="+common.Hash{31: 2}.Hex()+" owner=alice receiver=alice assets=105 shares=100")
}
