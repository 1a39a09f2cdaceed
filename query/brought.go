package query

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
)

// What a partner brought up to a past block is told from what it brought in each span
// of blocks before, which is kept with the checkpoints once it was asked for, and from
// its rows after these: from the last span that is known, or in the pin's own. Where
// the log was not in the order of the chain then, nobody can tell from sums who was a
// user, and it is told in another way (broughtAsOf).

// spanVolumeRow is what a partner brought to a vault in a span.
type spanVolumeRow struct {
	Span uint64 `ch:"span"`
	volumeRow
}

// broughtBySpans is what the caller brought up to a past pin, or false where spans do
// not tell.
func (x *exchange) broughtBySpans(p *pin) (out brought, ok bool, err error) {
	s, err := x.spans()
	if err != nil || p.seq != x.snapshot.seq {
		return out, false, err
	}
	if _, ordered, err := x.before(p); err != nil || !ordered {
		return out, false, err
	}
	mark := x.snapshot.lastMark(s)
	state, err := x.spanVolumes(s, mark)
	if err != nil {
		return out, false, err
	}
	edge := min(s.edge(mark), p.block/s.span)
	rows, err := pinned[volumeRow](x, p, sqlPartnerBetween, named("partner", x.caller.id), named("from", edge*s.span))
	return out.with(volumesBefore(state, edge), 1).with(rows, 1), true, err
}

// lastMark is the last one before which the snapshot knows all spans.
func (s *snapshot) lastMark(all *spans) int {
	for _, mark := range slices.Backward(all.marks) {
		if all.edge(mark)*all.span <= s.block && all.last[mark] <= s.seq {
			return mark
		}
	}
	return 0
}

// spanVolumes is what the caller brought in each of the spans before a mark, packed.
func (x *exchange) spanVolumes(s *spans, mark int) (packed, error) {
	if mark == 0 {
		return nil, nil
	}
	key := checkpointKey{of: fmt.Sprintf("brought by %d", x.caller.id), edge: s.edge(mark), last: s.last[mark]}
	return x.snapshot.head.checkpoints.get(x.ctx, key, func() (packed, error) {
		rows, err := x.readSpanVolumes(s, s.edge(mark))
		if err != nil {
			return nil, err
		}
		return packSpanVolumes(rows), nil
	})
}

// readSpanVolumes asks the engine for those before a span.
func (x *exchange) readSpanVolumes(s *spans, edge uint64) ([]spanVolumeRow, error) {
	newest := x.snapshot.pin()
	read := func(byRow bool) ([]spanVolumeRow, error) {
		how := struct {
			Span uint64
			Rows bool
		}{s.span, byRow}
		rows, err := pinned[spanVolumeRow](x, newest, question("partner_spans", how), named("partner", x.caller.id))
		return slices.DeleteFunc(rows, func(r spanVolumeRow) bool { return r.Span >= edge }), err
	}
	rows, err := read(false)
	if err == nil && slices.ContainsFunc(rows, func(r spanVolumeRow) bool { return r.Last > newest.seq }) {
		rows, err = read(true)
	}
	return rows, err
}

// packSpanVolumes goes through the vaults and their spans.
func packSpanVolumes(rows []spanVolumeRow) packed {
	slices.SortFunc(rows, func(a, b spanVolumeRow) int {
		return cmp.Or(cmp.Compare(a.Vault, b.Vault), cmp.Compare(a.Span, b.Span))
	})
	out := packed{}
	for vault, of := range byVault(rows, func(r spanVolumeRow) string { return r.Vault }) {
		out = out.addBytes([]byte(vault)).add(uint64(len(of)))
		was := uint64(0)
		for _, r := range of {
			out = out.add(r.Span - was).addSigned(r.Deposits).add(r.Said).addSigned(r.Users).addSigned(int64(r.Volume.Sign())).addBytes(r.Volume.Bytes())
			was = r.Span
		}
	}
	return out
}

// volumesBefore adds up, for each vault, the spans before one.
func volumesBefore(state packed, edge uint64) (out []volumeRow) {
	for len(state) > 0 {
		sum, span := volumeRow{Vault: string(state.takeBytes()), Volume: new(big.Int)}, uint64(0)
		for range state.take() {
			span += state.take()
			deposits, said, users, sign := state.takeSigned(), state.take(), state.takeSigned(), state.takeSigned()
			volume := new(big.Int).SetBytes(state.takeBytes())
			if span >= edge {
				continue
			}
			sum.Deposits, sum.Said, sum.Users = sum.Deposits+deposits, sum.Said+said, sum.Users+users
			sum.Volume.Add(sum.Volume, volume.Mul(volume, big.NewInt(sign)))
		}
		if sum.Said > 0 {
			out = append(out, sum)
		}
	}
	return out
}
