package write

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// draftMark is in the name of a lists table that is not finished.
const draftMark = "_draft_"

// clean removes the drafts that an interrupted Build left.
func (w *Writer) clean(ctx context.Context) error {
	tables, err := readmodel.Tables(ctx, w.conn, w.database)
	if err != nil {
		return err
	}
	for table := range tables {
		if !strings.Contains(table, draftMark) {
			continue
		}
		if err := w.ch.Discard(ctx, w.conn, w.database, table); err != nil {
			return err
		}
	}
	return nil
}

// Build builds lists as of the position, in a draft with a unique name, which is renamed to lists when it is
// complete. So a writer that stalled and continues late finishes a draft that no reader uses. session must be a
// session in the generation's database (readmodel.Config.OpenSession).
func (w *Writer) Build(ctx context.Context, session driver.Conn) error {
	draft := fmt.Sprintf("%s%s%x", readmodel.ListsTable.Name, draftMark, w.id)
	err := w.ch.CreateLists(ctx, w.conn, w.database, draft)
	if err == nil {
		err = readmodel.BuildLists(ctx, session, draft, w.Position(), w.id)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("build %s.lists as of seq %d: %w", w.database, w.Position(), err),
			w.ch.Discard(context.WithoutCancel(ctx), w.conn, w.database, draft))
	}
	if err := w.ch.Publish(ctx, w.conn, w.database, readmodel.ListsTable.Name, draft); err != nil {
		return err
	}
	select {
	case <-w.spare: // its memory is sized for large blocks
	default:
	}
	return w.openLists(ctx)
}

// openLists creates the views over lists, and reads their cursor and the vaults, which the writer of a built
// generation needs.
func (w *Writer) openLists(ctx context.Context) (err error) {
	if err := w.ch.CreateViews(ctx, w.conn, w.database); err != nil {
		return err
	}
	at := time.Now()
	if w.cursor, err = readmodel.ReadListsCursor(ctx, w.conn, readmodel.ListsTable.Name); err != nil {
		return err
	}
	if w.cursor.Seq > w.events.cursor.seq {
		return fmt.Errorf("%s.lists is at seq %d and events ends at %d: the newest rows of events are lost, "+
			"run `navlog projection rebuild`", w.database, w.cursor.Seq, w.events.cursor.seq)
	}
	read := func(ctx context.Context, conn driver.Conn, _ uint64) (mark, error) {
		c, err := readmodel.ReadListsCursor(ctx, conn, readmodel.ListsTable.Name)
		return mark{c.Seq, c.Writer}, err
	}
	w.lists = w.swapper(readmodel.ListsTable.Name, readmodel.ListsTable.Names(), read)
	w.lists.cursor, w.lists.readAt = mark{w.cursor.Seq, w.cursor.Writer}, at
	records, err := w.vaultRecords(ctx, w.Position())
	if err != nil {
		return err
	}
	w.vaults = map[common.Address]bool{}
	for _, r := range records {
		configured := !r.vault.GetRemoved()
		w.states[r.address] = vaultState{configured, configured && !w.mapped.Of(r.address).Matches(r.vault)}
		if !r.Passed {
			w.vaults[r.address] = true
		}
	}
	return nil
}

//go:embed sql/passed.sql
var sqlPassed string

// fits reports whether the rows of events after the cursor of lists are those that this writer would write. They are
// not if a writer that stalled in Build renamed its draft to lists after another writer had already added the history
// of another vault to events. Then fits removes these lists, so that they are built again. Afterwards it waits
// cursorAge: by then the late writer's cursors are too old to be used, and it cannot mistake the new table for its own.
func (w *Writer) fits(ctx context.Context) error {
	if w.events.cursor.seq == w.cursor.Seq {
		return nil
	}
	var rows []struct {
		Vault  common.Address `ch:"vault"`
		Passed bool           `ch:"passed"`
	}
	if err := w.conn.Select(upTo(ctx, w.Position()), &rows, sqlPassed); err != nil {
		return fmt.Errorf("read what %s.events has after seq %d: %w", w.database, w.Position(), err)
	}
	fits := true
	for _, r := range rows {
		fits = fits && r.Passed != w.vaults[r.Vault]
	}
	if fits {
		return nil
	}
	w.log.Warn("lists lacks a vault that events has, building it again",
		"cursor", w.cursor.Seq, "events", w.events.cursor.seq)
	if err := w.ch.Discard(ctx, w.conn, w.database, readmodel.ListsTable.Name); err != nil {
		return err
	}
	w.lists, w.cursor, w.vaults = nil, readmodel.ListsCursor{}, nil
	return Pause(ctx, cursorAge)
}

// upTo sets the query parameter for a seq, because another writer may have continued.
func upTo(ctx context.Context, seq uint64) context.Context {
	return readmodel.Parameters(ctx, map[string]uint64{"seq": seq})
}

type vaultRecord struct {
	Seq     uint64 `ch:"seq"`
	Passed  bool   `ch:"passed"`
	Payload string `ch:"payload"`
	address common.Address
	vault   *event.Vault
}

//go:embed sql/vaults.sql
var sqlVaults string

func (w *Writer) vaultRecords(ctx context.Context, seq uint64) (records []vaultRecord, err error) {
	err = w.conn.Select(upTo(ctx, seq), &records, sqlVaults)
	for i := 0; err == nil && i < len(records); i++ {
		var record event.Record
		err = proto.Unmarshal([]byte(records[i].Payload), &record)
		records[i].vault = record.GetVault()
		records[i].address = common.BytesToAddress(records[i].vault.GetAddress())
		if err == nil {
			err = w.mapped.Apply(records[i].vault)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the vaults of %s: %w", w.database, err)
	}
	return records, nil
}

// Mapped returns how the generation maps logs, by the vault records of events. The first record of a vault counts, so
// those after the position change nothing for the logs before them. The decoder of the generation extends the same
// mappings.
func (w *Writer) Mapped(ctx context.Context) (*mapping.Vaults, error) {
	_, err := w.vaultRecords(ctx, w.Written())
	return w.mapped, err
}

// LastVault returns the seq of the last record about a vault that the log has up to the position.
func (w *Writer) LastVault(ctx context.Context) (seq uint64, err error) {
	records, err := w.vaultRecords(ctx, w.Position())
	for _, r := range records {
		seq = r.Seq
	}
	return seq, err
}
