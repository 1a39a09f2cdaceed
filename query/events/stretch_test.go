package events

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
)

// TestStretchReadsLittle: a range of a long log is found by the index of seqs. The table is sorted by kind and block,
// so without that index all of it would be read.
func TestStretchReadsLittle(t *testing.T) {
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Exec("INSERT INTO events (seq, record, block, boundary) SELECT number + 1, if(number % 2 = 0, 'log', 'block'), " +
		"intDiv(number, 2), number % 2 FROM numbers(200000)")
	g.Merge("events") // a single part, because the engine also skips whole parts by their seqs
	question := strings.NewReplacer("{columns}", "*", "{after:UInt64}", "100000", "{to:UInt64}",
		strconv.Itoa(100000+stretchLength)).Replace(state.SQL(files, "stretch"))
	rows, err := g.Conn.Query(t.Context(), "EXPLAIN indexes = 1 "+question)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	_, numbered, ok := strings.Cut(plan.String(), "Name: numbered\n")
	granules := regexp.MustCompile(`Granules: (\d+)/(\d+)`).FindStringSubmatch(numbered)
	if !ok || granules == nil {
		t.Fatalf("the index of seqs is not used:\n%s", plan.String())
	}
	read, _ := strconv.Atoi(granules[1])
	of, _ := strconv.Atoi(granules[2])
	if read > 6 || of < 150 { // half of the range is in each kind, where it touches two granules
		t.Errorf("%d granules of %d are read for %d records:\n%s", read, of, stretchLength, plan.String())
	}
}
