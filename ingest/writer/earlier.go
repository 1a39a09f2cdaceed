package writer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
)

const (
	// earlierAtOnce is how many records are read between two steps of the vaults: about 100 ms of work.
	earlierAtOnce = 20_000
	// earlierInOne is how many referrals one transaction writes.
	earlierInOne = 1000
)

// earlier reads the log from its start for the referrals of a partner: before an alias was set, the logs that it
// matches named no partner when their referrals were due.
type earlier struct {
	vault   common.Address
	partner uint32
	record  uint64 // seq of the vault's newest record, whose mapping applies
	reader  *chainlog.Reader
	seq     uint64 // the log was read up to it
	unit    []chainlog.Entry
	found   map[uint64]referral // live ones, by seq
}

// SendEarlier reads the next part of the log, and writes the referrals once the whole log was read: those of blocks
// that the referral topics have passed. A referral that is written twice has the same event id, so neither a crash nor
// a second command changes anything.
func (w *Writer) SendEarlier(
	ctx context.Context, vault common.Address, partner uint32,
) (written int, ended bool, err error) {
	record := w.State.CoverageOf(vault).record
	if e := w.earlier; e != nil && (e.vault != vault || e.partner != partner || e.record != record) {
		w.endEarlier()
	}
	if w.earlier == nil {
		reader, err := chainlog.NewReader(w.ChainID, chainlog.Position{}, w.Kafka.Options()...)
		if err != nil {
			return 0, false, err
		}
		w.earlier = &earlier{vault: vault, partner: partner, record: record, reader: reader, found: map[uint64]referral{}}
	}
	e := w.earlier
	if e.seq < w.State.Seq {
		if err := e.read(ctx, w.State.Mapped, cmp.Or(w.EarlierAtOnce, earlierAtOnce)); err != nil {
			w.endEarlier()
			return 0, false, fmt.Errorf("read the log for the earlier referrals of partner %d: %w", partner, err)
		}
	}
	if e.seq < w.State.Seq {
		return 0, false, nil
	}
	w.endEarlier()
	var all []referral
	for _, seq := range slices.Sorted(maps.Keys(e.found)) {
		if r := e.found[seq]; r.GetLog().GetBlockNumber() <= w.State.published {
			all = append(all, r)
		}
	}
	for part := range slices.Chunk(all, earlierInOne) {
		if err := w.Commit(ctx, &Change{earlier: part}); err != nil {
			return 0, false, err
		}
	}
	return len(all), true, nil
}

func (w *Writer) endEarlier() {
	if w.earlier != nil {
		w.earlier.reader.Close()
	}
	w.earlier = nil
}

func (e *earlier) read(ctx context.Context, mapped *mapping.Vaults, most int) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	entries, err := e.reader.Poll(ctx, most)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		e.seq = entry.GetSeq()
		if entry.GetRetracts() != 0 {
			delete(e.found, entry.GetRetracts())
		} else if l := entry.GetLog(); l != nil && mapping.VaultOf(l) == e.vault {
			e.unit = append(e.unit, entry)
		}
		if !entry.GetBoundary() {
			continue
		}
		for _, r := range referralsOf(mapped, e.unit) {
			if r.effect.GetPartnerId() == e.partner {
				e.found[r.GetSeq()] = r
			}
		}
		e.unit = e.unit[:0]
	}
	return nil
}
