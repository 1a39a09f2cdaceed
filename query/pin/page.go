package pin

import (
	"context"
	"fmt"
)

// spareRows is how many rows of a list are read at first beside those before a page and
// on it, and moreRows by how much more each time that the page is not whole. No list has
// mostRows.
const (
	spareRows = 64
	moreRows  = 8
	mostRows  = 1 << 40
)

// WholePage reads the page of so many entries after the first offset ones of a list. More
// rows than entries have to be read, and nobody knows how many: what changed stands in a
// derived table as two rows that cancel each other until a merge takes them away, and each
// unit adds some, also to what is said of a block that it leaves as it was. So read makes the
// page out of the first most rows, and gives how many entries of it are surely there; total
// tells at the same time how many the list has. While the page lacks some of them, more rows
// are read. Only where both questions speak of the same belief it ever has them all.
func WholePage(ctx context.Context, p *Pin, offset uint64, size int, total func() (int64, error), read func(most uint64) (entries int, err error)) error {
	var entries int
	var all int64
	most := offset + uint64(size) + spareRows
	err := Together(
		func() (err error) { entries, err = read(most); return },
		func() (err error) { all, err = total(); return },
	)
	for err == nil && int64(entries) < min(int64(size), all-int64(offset)) {
		if most > mostRows { // a generation with a row that is there twice, which an audit finds
			return &Error{Ours: true, Err: fmt.Errorf("a list has %d entries by its signs, and %d after the first %d", all, entries, offset)}
		}
		if err = p.Settled(ctx); err == nil {
			most *= moreRows
			entries, err = read(most)
		}
	}
	return err
}
