package mapping

import (
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

// TestRenzo checks the effects of logs as the contracts of Renzo emit them, by the example of the page: only ETH counts,
// and a claim names its request in a struct.
func TestRenzo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/mappings/renzo.yaml")
	must(t, err)
	m, err := Parse("renzo.yaml", text)
	must(t, err)
	native, token := common.HexToAddress("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"), common.Address{1}
	from := func(source string, l Log) Log {
		role, ok := m.Role(source)
		if l.Role = role; !ok {
			t.Fatalf("no source %s", source)
		}
		return l
	}
	deposit := func(of common.Address) Log {
		return from("manager", emitted("Deposit(address,address,uint256,uint256,uint256)", 0, alice, of, 100, 97, 12))
	}
	// The topic is that of the chain, as published by an indexer of this event.
	if topic := deposit(token).Topics[0]; topic !=
		common.HexToHash("0x4e2ca0515ed1aef1395f66b5303bb5d6f1bf9d61a353fa53f73f8ac9973fa9f6") {
		t.Errorf("the topic of deposits is %s", topic)
	}
	claim := func(of common.Address) Log {
		return from("queue", emitted("WithdrawRequestClaimed((address,uint256,uint256,uint256,uint256))", 0, of, 5, 39, 40,
			1700000000))
	}
	tx := []Log{
		deposit(common.Address{}), deposit(token),
		from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256)", 1, 4, bob, native,
			20, 19, 0)),
		from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256,bool,uint256)", 1, 5,
			alice, native, 41, 40, 0, 1, 7)),
		from("queue", emitted("WithdrawRequestCreated(uint256,address,address,uint256,uint256,uint256,bool,uint256)", 1, 6,
			alice, token, 41, 40, 0, 1, 7)),
		claim(native), claim(token),
	}
	var got []string
	for _, e := range mapped(t, m.Compile(), tx...) {
		words := e.Kind.String()
		for _, v := range e.Values() {
			words += " " + v.Name + "=" + v.Text
		}
		got = append(got, strings.NewReplacer(alice.Hex(), "alice", bob.Hex(), "bob").Replace(words))
	}
	want := []string{"deposit key=1677721602 owner=alice sender=alice assets=100 shares=97 attribution=" +
		common.Hash{31: 12}.Hex(), "requested key=4 owner=bob receiver=bob shares=19 estimate=20",
		"requested key=5 owner=alice receiver=alice shares=40 estimate=41", "claimed key=5 assets=39"}
	if !slices.Equal(got, want) {
		t.Errorf("the effects are\n%q, want\n%q", got, want)
	}
}
