package pin

// spareRows is how many rows of a list are read at first beside those before a page and
// on it, and moreRows by how much more each time that the page is not whole.
const (
	spareRows = 64
	moreRows  = 8
)

// WholePage reads a page that ends with so many rows of a list of a derived table. Rows
// that changed stand there in pairs that cancel each other, side by side, until a merge
// takes them away. So read reads the page out of the first most rows, of which only the
// last may lack its other one, and tells whether it is whole: one entry more than the
// page has proves that. Where there is none, more rows are read, up to all of them, of
// which count tells how many they are, asked at the same time.
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
