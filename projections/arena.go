package projections

// arena holds many values of one type by number. A million of them are a few
// hundred pieces to the garbage collector, which need not look into them as
// long as T holds no pointer.
// Numbers begin at 1, so that 0 is none; a place stays where it is.
type arena[T any] struct {
	pieces [][]T
	used   uint32
	free   []uint32
}

const arenaPiece = 1 << 12

func (a *arena[T]) at(n uint32) *T { return &a.pieces[(n-1)/arenaPiece][(n-1)%arenaPiece] }

// add makes room for an empty value.
func (a *arena[T]) add() (uint32, *T) {
	if last := len(a.free) - 1; last >= 0 {
		n := a.free[last]
		a.free = a.free[:last]
		return n, a.at(n)
	}
	if int(a.used) == len(a.pieces)*arenaPiece {
		a.pieces = append(a.pieces, make([]T, arenaPiece))
	}
	a.used++
	return a.used, a.at(a.used)
}

// remove empties a place, for another value.
func (a *arena[T]) remove(n uint32) {
	var empty T
	*a.at(n) = empty
	a.free = append(a.free, n)
}
