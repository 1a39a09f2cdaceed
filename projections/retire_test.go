package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// TestSurplus: the oldest standby generations are surplus, but never the live one, one that is being built or one
// that is bad. A generation that is being built is surplus if it is outdated and a newer one is live.
func TestSurplus(t *testing.T) {
	l := &list{live: 4}
	standby, building, live := registry.Standby, registry.Building, registry.Live
	for i, state := range []string{standby, building, standby, live, standby, building} {
		l.all = append(l.all, generation{ID: int32(i) + 1, State: state})
	}
	for keep, want := range map[int]int32{1: 1, 2: 1, 3: 0, 100: 0, 0: 0} {
		if got := l.toDrop(keep); got != want {
			t.Errorf("of three in standby %d are kept, and %d is dropped, want %d", keep, got, want)
		}
	}
	for id, want := range map[int32]int32{2: 2, 3: 0, 4: 0, 6: 0} {
		l.all[id-1].Outdated = true
		if got := l.toDrop(3); got != want {
			t.Errorf("if generation %d is outdated, %d is dropped, want %d", id, got, want)
		}
		l.all[id-1].Outdated = false
	}
}

// TestRetiringEnds: a drop that ends with the projector is not logged as done. While something is wrong with the log,
// none begins.
func TestRetiringEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none") // it does not connect
	must(t, err)
	defer pool.Close()
	p := &Projections{config: Config{Standbys: 1}, stores: stores{pool: pool}}
	p.log = slog.New(whenLogged{sentence: "surplus generation dropped",
		call: func() { t.Error("the generation was not dropped") }})
	live := new(keeper)
	live.board.open(1, 1, true)
	live.board.set(Following, nil)
	p.roster.keepers = map[int32]*keeper{3: live}
	l := &list{live: 3, all: []generation{
		{ID: 1, State: registry.Standby}, {ID: 2, State: registry.Standby}, {ID: 3, State: registry.Live}}}
	live.board.fault = errors.New("its records were deleted")
	p.retire(ctx, l)
	if p.roster.retiring != nil {
		t.Fatal("a generation is dropped that cannot be built again")
	}
	live.board.fault = nil
	p.retire(ctx, l)
	<-p.roster.retiring
}

// TestFailedDropIsRetried: a drop that failed after the list was changed is completed. A dropped generation whose
// database exists for another reason has a note, and its database stays: it may belong to another deployment.
func TestFailedDropIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	for id, state := range map[int32]string{1: registry.Dropped, 2: registry.Dropped, 3: registry.Live} {
		w.registered(t, id, s.Records[0].GetOrigin().GetLogId(), readmodel.Schema(), state)
	}
	exists := func(id int32) bool {
		tables, err := readmodel.Tables(t.Context(), w.conn, w.ch.Database(id))
		must(t, err)
		return len(tables) > 0
	}
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	for _, id := range []int32{1, 2} {
		must(t, w.ch.CreateEvents(t.Context(), w.conn, w.ch.Database(id)))
	}
	o := w.operator(t)
	all, err := o.List(t.Context())
	must(t, err)
	for _, g := range all[:2] {
		if !strings.Contains(g.Note, fmt.Sprintf("`navlog projection drop %d`", g.ID)) {
			t.Errorf("generation %d has the note %q", g.ID, g.Note)
		}
	}
	l := &list{live: 3, dropped: []int32{1, 2}}
	q := &Projections{config: Config{Standbys: 1}, stores: o.stores}
	q.log, q.roster.keepers = slog.New(slog.DiscardHandler), p.roster.keepers
	for _, unfinished := range []int32{0, 2} {
		q.roster.unfinished, q.roster.retried = unfinished, time.Time{}
		q.retire(t.Context(), l)
		if q.roster.retiring != nil {
			<-q.roster.retiring
		}
		if !exists(1) || exists(2) == (unfinished == 2) {
			t.Errorf("with %d unfinished, there are databases 1: %t, 2: %t", unfinished, exists(1), exists(2))
		}
	}
}

// TestUnwritten: a generation that its projector cannot write has a note with the reason in the list, and no other one
// does.
func TestUnwritten(t *testing.T) {
	all := []Generation{
		{ID: 1, State: registry.Standby, reported: &Status{State: Bad, Reason: "a vault was restored"}},
		{ID: 2, State: registry.Standby, reported: &Status{State: Following}},
		{ID: 3, State: registry.Standby},
		{ID: 4, State: registry.Live, reported: &Status{State: Bad, Reason: "the log has a hole"}},
		{ID: 5, State: registry.Building, reported: &Status{State: Retrying, Reason: "memory limit exceeded"}},
	}
	noteUnwritten(all)
	for i, want := range []string{
		"it is not written any more, because a vault was restored: drop it with `navlog projection drop 1`", "", "",
		"it is not written any more, because the log has a hole",
		"it is not written, retrying: memory limit exceeded; it continues when this ends",
	} {
		if all[i].Note != want {
			t.Errorf("generation %d has the note %q, want %q", all[i].ID, all[i].Note, want)
		}
	}
}

// TestLeftBuilding: a generation that stays in state building has a note in the list; one that is making progress, or
// that project will make live, has none.
func TestLeftBuilding(t *testing.T) {
	at := func(seq uint64) *uint64 { return &seq }
	live := Generation{ID: 1, State: registry.Live, Seq: at(10), Schema: "s", LogID: "log"}
	outdated := live
	outdated.Outdated = true
	building := func(seq *uint64, schema, log string) Generation {
		return Generation{ID: 2, State: registry.Building, Seq: seq, Schema: schema, LogID: log}
	}
	for _, c := range []struct {
		what  string
		all   []Generation
		noted string
	}{
		{"complete", []Generation{live, building(at(10), "s", "log")}, "with everything that the live one has"},
		{"on its way", []Generation{live, building(at(9), "s", "log")}, ""},
		{"without tables", []Generation{live, building(nil, "s", "log")}, ""},
		{"of another schema", []Generation{live, building(nil, "t", "log")}, "of another schema"},
		{"of another log", []Generation{live, building(at(1), "s", "other")}, "from another log"},
		{"beside an outdated one", []Generation{outdated, building(at(10), "s", "log")}, ""},
		{"the first one", []Generation{building(at(10), "s", "log")}, ""},
	} {
		noteStaysBuilding(c.all)
		if note := c.all[len(c.all)-1].Note; !strings.Contains(note, c.noted) || (c.noted == "") != (note == "") {
			t.Errorf("%s: the note is %q, want %q", c.what, note, c.noted)
		}
	}
}

// TestSurplusStandbyIsDropped: project drops surplus generations by itself, even one that it writes, and keeps the
// rest. A generation that a restore of PostgreSQL left behind has a note in the list.
func TestSurplusStandbyIsDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("several generations")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	o := w.operator(t)
	logID := s.Records[0].GetOrigin().GetLogId()
	for id, state := range map[int32]string{1: registry.Standby, 2: registry.Standby, 3: registry.Standby,
		4: registry.Live, 5: registry.Building} {
		w.registered(t, id, logID, readmodel.Schema(), state)
	}
	p, _ := w.projector(t)
	start(t, p)
	w.wantAt(t, 5, s.Seq())
	w.wantAt(t, 4, s.Seq())
	wait.Until(t, func() error {
		all, err := o.List(t.Context())
		if err != nil {
			return err // its tables are being dropped
		}
		if all[0].State != registry.Dropped || all[0].Seq != nil {
			return fmt.Errorf("generation 1 is %s", all[0].State)
		}
		return nil
	})
	wantStates(t, o, "1 dropped, 2 standby, 3 standby, 4 live, 5 building")
	all, err := o.List(t.Context())
	must(t, err)
	for _, g := range all {
		if noted := g.Note != ""; noted != (g.ID == 5) {
			t.Errorf("generation %d has the note %q", g.ID, g.Note)
		}
	}
}
