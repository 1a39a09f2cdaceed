// Package structure has no code of its own: its tests hold the rules of the
// whole repository that no single package can.
package structure

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/navlog/navlog/"

var programs = []string{"ingest", "projections", "query", "dispatch"}

// layer is the first folder of an import path of ours, "" for a foreign one.
func layer(path string) string {
	rest, ours := strings.CutPrefix(path, module)
	if !ours {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// allowed tells whether a package in layer from may import one in layer to.
func allowed(from, to string) bool {
	switch {
	case to == "" || from == to:
		return true
	case from == "schemas":
		return false
	case slices.Contains(programs, from):
		return to == "schemas"
	default: // cmd and deploy tie everything together
		return true
	}
}

// rooms says of each room of a program which other rooms of it that one may import.
// A program's own folder ties its rooms together, and may import all of them.
var rooms = map[string][]string{
	"ingest/proof": {}, // pure: asks nobody
	"ingest/rpc":   {"ingest/proof"},

	"projections/decode": {}, // pure
	"projections/derive": {"projections/decode"},
	"projections/write":  {"projections/decode", "projections/derive"}, // the only one that inserts
	"projections/oracle": {},                                           // nothing of what it judges
	"projections/verify": {"projections/oracle"},

	"query/pin":         {}, // the only one that asks ClickHouse
	"query/httpapi":     {"query/pin"},
	"query/access":      {"query/httpapi"},
	"query/docs":        {"query/httpapi"},
	"query/webhooks":    {"query/httpapi"},
	"query/health":      {"query/httpapi", "query/pin"},
	"query/unswept":     {"query/httpapi", "query/pin"},
	"query/vaults":      {"query/httpapi", "query/pin"}, // no resource imports another
	"query/users":       {"query/httpapi", "query/pin"},
	"query/deposits":    {"query/httpapi", "query/pin", "query/unswept"},
	"query/withdrawals": {"query/httpapi", "query/pin"},
	"query/settlement":  {"query/httpapi", "query/pin", "query/unswept"},
	"query/partner":     {"query/httpapi", "query/pin"},
	"query/readtest":    {"query/httpapi", "query/pin"}, // tests only, as the next
	"query/oracle":      {"query/readtest"},
}

// fromRoom tells why a package must not import another one of its program; empty
// where it may.
func fromRoom(path, imported string) string {
	from, ours := strings.CutPrefix(path, module)
	to, alsoOurs := strings.CutPrefix(imported, module)
	program, room, inside := strings.Cut(from, "/")
	switch {
	case !ours || !inside || room == "" || !slices.Contains([]string{"ingest", "projections", "query"}, program):
		return ""
	case rooms[from] == nil:
		return "the room is not in the table of rooms, which says what it may import"
	case !alsoOurs && program == "query" && from != "query/pin" && from != "query/readtest" && strings.HasPrefix(imported, "github.com/ClickHouse/"):
		return "only query/pin asks ClickHouse"
	case !alsoOurs && program == "ingest" && strings.HasPrefix(imported, "github.com/twmb/franz-go"):
		return "only ingest itself writes to Kafka: its rooms know no log"
	case from == "ingest/proof" && (imported == "net/http" || strings.HasPrefix(imported, "github.com/ethereum/go-ethereum/rpc")):
		return "ingest/proof asks nobody"
	case alsoOurs && layer(imported) == program && !slices.Contains(rooms[from], to):
		return "its room may import " + strings.Join(rooms[from], ", ") + " of its program and nothing else"
	}
	return ""
}

// The four programs share no code but the schemas, and the schemas know
// nothing of the programs. Tests may start engines from deploy/local.
func TestDependencyRule(t *testing.T) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); err != nil {
			t.Fatalf("read go list: %v", err)
		}
		for _, imported := range p.Imports {
			if !allowed(layer(p.ImportPath), layer(imported)) {
				t.Errorf("%s imports %s: ingest, projections, query and dispatch may import schemas only, and schemas nothing of ours", p.ImportPath, imported)
			}
			if why := fromRoom(p.ImportPath, imported); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
			}
		}
	}
	if packages < 10 {
		t.Errorf("go list found %d packages: the rule was not checked", packages)
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"ingest", "schemas", true}, {"ingest", "query", false}, {"query", "projections", false}, {"dispatch", "deploy", false},
		{"schemas", "ingest", false}, {"schemas", "schemas", true}, {"cmd", "ingest", true}, {"deploy", "query", true}, {"ingest", "", true},
	} {
		if got := allowed(c.from, c.to); got != c.want {
			t.Errorf("allowed(%q, %q) = %v", c.from, c.to, got)
		}
	}
}

func TestFromRoom(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{module + "query/users", module + "query/pin", true}, {module + "query/users", module + "query/vaults", false},
		{module + "query/users", "github.com/ClickHouse/clickhouse-go/v2", false}, {module + "query/pin", "github.com/ClickHouse/clickhouse-go/v2", true},
		{module + "query/users", module + "schemas/readmodel", true}, {module + "query/new", "fmt", false}, {module + "query", module + "query/users", true},
		{module + "projections/oracle", module + "projections/write", false}, {module + "projections", module + "projections/write", true}, {module + "ingest/rpc", module + "ingest", false},
		{module + "ingest/rpc", module + "ingest/proof", true}, {module + "ingest", module + "ingest/rpc", true}, {module + "ingest/proof", module + "ingest/rpc", false},
		{module + "ingest/rpc", "github.com/twmb/franz-go/pkg/kgo", false}, {module + "ingest/proof", "net/http", false}, {module + "ingest/new", "fmt", false},
	} {
		if got := fromRoom(c.from, c.to) == ""; got != c.want {
			t.Errorf("from %q may import %q: %v", c.from, c.to, got)
		}
	}
}
