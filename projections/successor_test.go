package projections

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// TestSuccessorCannotBeBuilt: the log lost a record that the live generation has, and a vault is added. project creates
// one successor, which it cannot build. It creates no other one and is not ready, with the reason. When the log is
// complete again, it continues after a restart.
func TestSuccessorCannotBeBuilt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	logID := s.Records[0].GetOrigin().GetLogId()
	w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	o := w.operator(t)

	complete := slices.Clone(s.Records)
	from := s.Seq()
	s.Vault(vaultAt(2))
	added := s.Records[from:]
	w.newLog(t)
	w.append(t, slices.Concat(complete[:5], complete[6:], added))
	q, _ := w.projector(t)
	stop = start(t, q)
	wait.Until(t, func() error {
		if err := q.Ready(); err == nil || !strings.Contains(err.Error(), "generation 2") ||
			!strings.Contains(err.Error(), "records were lost") || q.Status().Reason != err.Error() {
			return fmt.Errorf("ready is %v, status %+v, generations %s", err, q.Status(), states(t, o))
		}
		return nil
	})
	w.more(t, s)
	w.wantAt(t, 1, s.Seq())      // the live one continues
	wait.Until(t, func() error { // the projector has reported it
		all, err := o.List(t.Context())
		if err == nil && !strings.Contains(all[1].Note, "records were lost") {
			err = fmt.Errorf("generation 2 has the note %q", all[1].Note)
		}
		return err
	})
	wantStates(t, o, "1 live, 2 building")
	must(t, stop())

	w.newLog(t)
	w.append(t, slices.Concat(complete, added, s.Records[len(complete)+len(added):]))
	q, _ = w.projector(t)
	start(t, q)
	from = s.Seq()
	s.Mine()
	w.append(t, s.Records[from:])
	follows(t, q, 2, s.Seq())
	w.verify(t, s.Seq())
}

// TestSuccessorOfEachFault: the fault of a generation that is being built, as the successor of an outdated one, prevents
// another successor until an operator resolves it, unless only another one resolves it: a vault was restored.
func TestSuccessorOfEachFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	logID := s.Records[0].GetOrigin().GetLogId()
	w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
	w.registered(t, 2, logID, readmodel.Schema(), registry.Building)
	topic := chainlog.LogTopic(chainID)
	hole := &chainlog.HoleError{Topic: topic, Offset: 9, Want: 7, Got: 8}
	restored := &write.OutdatedError{Vault: common.Address(vaultB), Block: 3, Newest: 9}
	for name, c := range map[string]struct {
		live, building error
		made           bool
		words          string
	}{
		"none":                        {nil, nil, false, ""},
		"a hole":                      {nil, hole, false, "records were lost"},
		"a repeated seq":              {nil, &chainlog.HoleError{Topic: topic, Want: 8, Got: 7}, false, "two writers wrote the log"},
		"a corrupt record":            {nil, &chainlog.CorruptError{Topic: topic, Err: errors.New("no record")}, false, "is corrupt"},
		"an older copy":               {nil, &permanentError{errors.New("ends before seq 9")}, false, "ends before seq 9"},
		"an altered table":            {nil, &readmodel.TableError{Database: "g2", Table: "events", Lacks: "x"}, false, "lacks x"},
		"lost rows":                   {nil, verify.Broken("events has 1 row"), false, "rows were lost"},
		"a restored vault":            {nil, restored, true, ""},
		"a restored vault, both":      {restored, restored, true, ""},
		"a restored vault and a hole": {restored, hole, false, "records were lost"},
		"a hole, only the live one":   {hole, restored, false, ""},
		"a hole, both":                {hole, hole, false, ""},
	} {
		p := &Projections{stores: stores{chainID, w.kafka, w.ch, w.conn, w.pool}, log: slog.New(slog.DiscardHandler)}
		p.roster.keepers = map[int32]*keeper{}
		for id, fault := range map[int32]error{1: c.live, 2: c.building} {
			k := &keeper{generation: generation{ID: id}}
			if fault != nil {
				k.board.set(Bad, fault)
				k.board.set(Starting, nil)
				k.board.set(Retrying, errors.New("no engine")) // it was retried
			}
			p.roster.keepers[id] = k
		}
		needed := map[int32]generation{1: {ID: 1, State: registry.Live, Outdated: true}, 2: {ID: 2, State: registry.Building}}
		made, err := p.replaceOutdated(t.Context(), s.Records[0].GetOrigin(), &list{live: 1, newest: 2}, needed)
		if made != c.made || (err != nil) != (c.words != "") || err != nil && !permanent(err) {
			t.Errorf("%s: another successor was made: %t, %v", name, made, err)
		}
		if c.words != "" {
			wantError(t, err, "generation 2", c.words, "`navlog projection drop 2`")
		}
		_, err = w.pool.Exec(t.Context(), "DELETE FROM generation WHERE id = 3")
		must(t, err)
	}
}
