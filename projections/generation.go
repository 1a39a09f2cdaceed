package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// generation is a set of tables in one database, made from one log, as the registry lists it. It has none of the
// records of the vaults Without in its lists, and maps logs by the vault records Vaults: both as they were when it was
// created. Outdated means that it cannot represent the whole log, because a vault was added, removed or restored since
// it was built.
type generation = db.ListGenerationsRow

// origin waits for the first record of the log.
func (p *Projections) origin(ctx context.Context) (*event.Origin, error) {
	for {
		o, err := chainlog.ReadOrigin(ctx, p.chainID, p.kafka.Options()...)
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("look for the first record: %w", err)
		}
		if err == nil && o != nil {
			return o, nil
		}
		if err := write.Pause(ctx, 250*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// checkOrigin rejects a generation that belongs to another log or another schema.
func (p *Projections) checkOrigin(g generation, origin *event.Origin) error {
	if !bytes.Equal(g.LogID, origin.GetLogId()) {
		return &permanentError{fmt.Errorf("generation %d was made from log %x, and %s is log %x: if the new log is the "+
			"true one, run `navlog projection rebuild`", g.ID, g.LogID, chainlog.LogTopic(p.chainID), origin.GetLogId())}
	}
	if g.Schema != readmodel.Schema() {
		return &permanentError{fmt.Errorf("generation %d has schema %s and this navlog writes %s: run `navlog projection "+
			"rebuild` with this one, or start the navlog that made it", g.ID, g.Schema, readmodel.Schema())}
	}
	return nil
}

// writable reports whether a generation in this state is kept up to date.
func writable(state string) bool {
	return state == registry.Live || state == registry.Standby || state == registry.Building
}

// list contains the generations that are kept up to date.
type list struct {
	all    []generation
	live   int32 // 0 if none is live
	newest int32 // the highest existing id
	// dropped has the ids of generations that may have left a database.
	dropped []int32
	// refusal is the reason why the live generation cannot be written.
	refusal error
}

// listTimeout is the time limit for a list that PostgreSQL has: a server that hangs would never return it.
const listTimeout = 10 * time.Second

// listed returns the list of generations, by id.
func (s *stores) listed(ctx context.Context) ([]generation, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := db.New(s.pool).ListGenerations(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the generations in PostgreSQL: %w", err)
	}
	return all, nil
}

// generations lists the generations that are kept up to date. It creates the very first one, which is built and goes
// live by itself.
func (p *Projections) generations(ctx context.Context, origin *event.Origin) (*list, error) {
	rows, err := p.listed(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		if _, err := p.create(ctx, 1, origin); err != nil {
			return nil, err
		}
		return p.generations(ctx, origin)
	}
	l := &list{newest: rows[len(rows)-1].ID}
	var others string
	building := false
	for _, g := range rows {
		others += fmt.Sprintf(" %d (%s)", g.ID, g.State)
		if g.State == registry.Live {
			l.live = g.ID
		}
		if writable(g.State) {
			l.all = append(l.all, g)
		}
		if g.State == registry.Dropped {
			l.dropped = append(l.dropped, g.ID)
		}
		building = building || g.State == registry.Building
	}
	if l.live == 0 && !building {
		l.refusal = fmt.Errorf("no generation is live, there are only:%s: run `navlog projection rebuild`", others)
	}
	return l, nil
}

// create adds a generation of a log to the list; made is false if another instance was faster. The generation omits the
// vaults that are removed by the newest cursor of ingest, and maps the logs of the others by their newest records,
// which are written together with it. Cursors of older versions do not locate the records; then there are no mappings.
//
// Its database must be new or empty: rows of a generation that the list does not have belong to something else, such as
// a generation that was made after the backup from which PostgreSQL was restored. The database comes first, so that it
// exists when serve sees the generation in the list.
func (s *stores) create(ctx context.Context, id int32, origin *event.Origin) (made bool, err error) {
	database := s.clickhouse.Database(id)
	at, err := readmodel.ReadPosition(ctx, s.conn, database)
	if err != nil {
		return false, err
	}
	if at.Seq > 0 {
		all, err := s.listed(ctx)
		if err != nil {
			return false, err
		}
		if len(all) > 0 && all[len(all)-1].ID >= id {
			return false, nil // another instance was faster and has begun to write
		}
		return false, &permanentError{fmt.Errorf("database %s holds rows (events up to seq %d), and PostgreSQL has no "+
			"generation %d: restore PostgreSQL, or drop the database", database, at.Seq, id)}
	}
	if err := s.clickhouse.CreateEvents(ctx, s.conn, database); err != nil {
		return false, err
	}
	cursor, err := chainlog.ReadCursor(ctx, s.chainID, s.kafka.Options()...)
	if err != nil {
		return false, fmt.Errorf("read which vaults are configured: %w", err)
	}
	g := db.CreateGenerationParams{ID: id, LogID: origin.GetLogId(), Schema: readmodel.Schema(), State: registry.Building,
		Without: [][]byte{}, Vaults: [][]byte{}}
	for _, v := range cursor.GetVaults() {
		if v.GetRemoved() {
			g.Without = append(g.Without, v.GetAddress())
		}
	}
	records, err := chainlog.ReadVaults(ctx, s.chainID, cursor, s.kafka.Options()...)
	if err != nil {
		return false, err
	}
	for _, r := range records {
		encoded, err := proto.Marshal(r)
		if err != nil {
			return false, fmt.Errorf("encode the record of vault %x: %w", r.GetAddress(), err)
		}
		g.Vaults = append(g.Vaults, encoded)
	}
	err = db.New(s.pool).CreateGeneration(ctx, g)
	var taken *pgconn.PgError
	if errors.As(err, &taken) && taken.Code == "23505" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create generation %d in PostgreSQL: %w", id, err)
	}
	return true, nil
}
