package pin

// spareRows is how many rows of a list are read at first beside those before a page and
// on it, and moreRows by how much more each time that the page is not whole.
const (
	spareRows = 64
	moreRows  = 8
)

// WholePage reads a page, whose end is about rows rows from the beginning of the list. More
// rows than entries have to be read, and nobody knows how many: what changed stands in a
// derived table as two rows that cancel each other, side by side, until a merge takes them
// away. So read makes the page out of the first most rows. It is whole when they held one
// entry more than the page shows: a pair can be cut in two at their end alone. Otherwise
// more rows are read, at most all that there are, which count tells at the same time.
func WholePage(rows uint64, read func(most uint64) (whole bool, err error), count func() (rows uint64, err error)) error {
	most, all, whole := rows+spareRows, uint64(0), false
	err := Together(
		func() (err error) { whole, err = read(most); return },
		func() (err error) { all, err = count(); return },
	)
	for err == nil && !whole && most < all {
		most *= moreRows
		whole, err = read(most)
	}
	return err
}
