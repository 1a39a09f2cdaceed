package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// registered returns a world whose watcher has a registry.
func registered(t *testing.T) (*readtest.World, *pgxpool.Pool) {
	t.Helper()
	pool, err := registry.Open(t.Context(), registry.Config{URL: registrytest.Postgres(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Watch(pool)
	return w, pool
}

func generation(t *testing.T, pool *pgxpool.Pool, id int32, schema, state string) {
	t.Helper()
	p := db.CreateGenerationParams{ID: id, LogID: make([]byte, 16), Schema: schema, State: state}
	if err := db.New(pool).CreateGeneration(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// TestWhichGeneration: the live one with our schema is served; while there is none, the newest one that is being
// built, which has events but no lists.
func TestWhichGeneration(t *testing.T) {
	w, pool := registered(t)
	ctx := t.Context()
	look := func(want string) {
		t.Helper()
		w.LookAtRegistry(ctx)
		got := ""
		if err := w.Watcher.Look(ctx); err != nil {
			got = err.Error()
		} else if s := w.Snapshot(); s != nil {
			got = fmt.Sprintf("generation %d at %d, partial %v", s.Generation-w.Gen.ID, s.Block, s.Partial)
		}
		if !strings.Contains(got, want) || got == "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := w.Watcher.Look(ctx); err == nil ||
		!strings.Contains(err.Error(), "has not reported yet which generation is live") {
		t.Errorf("before the first read of the registry: %v", err)
	}
	look("no generation is live: `navlog project` makes the first one")
	generation(t, pool, w.Gen.ID-1_000_000, "older", registry.Building)
	look("no generation is live")
	building := readtest.New(t, enginetest.ClickHouse(t))
	generation(t, pool, building.ID, readmodel.Schema(), registry.Building)
	look("holds no indexed block yet")
	chain := readtest.SmallChain()
	building.WriteEvents(chain)
	look(fmt.Sprintf("generation %d at 11, partial true", building.ID-w.Gen.ID))
	first := w.Snapshot()
	if len(first.Vaults) != 2 || first.First != 3 || first.Seq != chain.Seq() ||
		first.Time != uint64(readtest.BlockTime(11)) {
		t.Errorf("the generation being built is reported as %+v", first)
	}
	set := func(id int32, from, to string) {
		t.Helper()
		if n, err := db.New(pool).SetGenerationState(ctx,
			db.SetGenerationStateParams{ID: id, OldState: from, NewState: to}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	set(building.ID, registry.Building, registry.Live)
	look("holds no indexed block yet") // a live generation is defined by its lists
	building.WriteLists(chain)
	look(fmt.Sprintf("generation %d at 11, partial false", building.ID-w.Gen.ID))
	if w.Snapshot() == first {
		t.Error("the snapshot is the same for another state")
	}
	generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Building)
	w.Log.Append(readtest.BlockRecord(4))
	w.Write()
	look(fmt.Sprintf("generation %d at 11, partial false", building.ID-w.Gen.ID)) // the live one stays
	was := w.Snapshot()
	set(building.ID, registry.Live, registry.Standby)
	set(w.Gen.ID, registry.Building, registry.Live)
	look("generation 0 at 4, partial false")
	if n := w.Snapshot(); n.Unchanged(was.Generation, was.Seq, nil) || n.Kept(was.Generation, was.Seq, 3) {
		t.Error("the state of another generation is reported for this one")
	}
	if got := w.Leaving(); len(got) != 1 || got[building.ID] <= 0 || got[building.ID] > time.Minute {
		t.Errorf("leaving %v", got)
	}
	if _, err := pool.Exec(ctx, "UPDATE generation SET schema = 'older' WHERE state = 'live'"); err != nil {
		t.Fatal(err)
	}
	look("this program reads schema")
	if w.Snapshot() != nil {
		t.Error("another schema is served")
	}
}

// TestFirstSyncProgress: the progress is what project reports, for as long as it reports it.
func TestFirstSyncProgress(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Building)
	reports := func(status string) *registry.BuildingStatus {
		t.Helper()
		if err := db.New(pool).PutStatus(t.Context(),
			db.PutStatusParams{Program: "project", Instance: "a", Status: []byte(status)}); err != nil {
			t.Fatal(err)
		}
		if r := w.LookAtRegistry(t.Context()); r.Err != nil {
			t.Fatal(r.Err)
		}
		return w.FirstSync()
	}
	if got := reports(`{"state":"following"}`); got != nil {
		t.Errorf("without a report the progress is %+v", got)
	}
	if got := reports(`{"state":"building","building":{"generation":1000000,"seq":5,"recordsLeft":7,"etaSeconds":null,"phase":"facts"}}`); got != nil {
		t.Errorf("another generation's progress is reported: %+v", got)
	}
	got := reports(fmt.Sprintf(`{"state":"building","building":{"generation":%d,"seq":5,"recordsLeft":7,"etaSeconds":9,"phase":"facts"}}`, w.Gen.ID))
	if got == nil || got.Seq != 5 || got.RecordsLeft != 7 || got.ETASeconds == nil || *got.ETASeconds != 9 ||
		got.Phase != registry.PhaseFacts {
		t.Errorf("%+v", got)
	}
	w.Now = func() time.Time { return time.Now().Add(6 * time.Second) }
	if got := w.FirstSync(); got != nil {
		t.Errorf("an old report is still shown: %+v", got)
	}
}

// TestRegistryGone: the last known content stays.
func TestRegistryGone(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Live)
	w.Log.Append(readtest.BlockRecord(4))
	w.Write()
	w.LookAtRegistry(t.Context())
	w.Look()
	answered := w.Registry().Answered
	pool.Close()
	if r := w.LookAtRegistry(t.Context()); r.Err == nil || !r.Known || r.Answered != answered {
		t.Errorf("%+v", r)
	}
	w.Log.Append(readtest.BlockRecord(5))
	w.Write()
	if s := w.Look(); s.Block != 5 {
		t.Errorf("%+v", s)
	}
}

// TestMappingOfTheGeneration: a vault is described by its newest record, and its logs by the mapping that the
// generation has used for them: that of the records with which it was made, or else the first one in the log.
func TestMappingOfTheGeneration(t *testing.T) {
	for want, made := range map[string]bool{"erc4626": false, "erc7540": true} {
		w, pool := registered(t)
		first := readtest.PresetRecord(t, readtest.VaultA, "Alpha", 1, "erc4626")
		newest := readtest.PresetRecord(t, readtest.VaultA, "Alpha 2", 1, "erc7540")
		generation(t, pool, w.Gen.ID, readmodel.Schema(), registry.Live)
		if made {
			record, err := proto.Marshal(newest.Meta)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), "UPDATE generation SET vaults = $1", [][]byte{record}); err != nil {
				t.Fatal(err)
			}
		}
		w.LookAtRegistry(t.Context())
		w.Log.Append(first, readtest.BlockRecord(1))
		w.Log.Append(newest, readtest.BlockRecord(2))
		w.Write()
		if v := w.Look().Vaults; len(v) != 1 || v[0].Name != "Alpha 2" ||
			v[0].Mapped.Description.Ranges[0].Mapping.Name != want {
			t.Errorf("%s: %+v", want, v)
		}
	}
}
