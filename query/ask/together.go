package ask

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Panic is what a part of Together panicked with, and where.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Together runs parts that do not wait for each other at once, and gives the first error. A part
// that panics does so where Together was called, with a *Panic: in a goroutine of its own nothing
// would recover it, and the program would end.
func Together(parts ...func() error) error {
	var group errgroup.Group
	var panicked atomic.Pointer[Panic]
	for _, part := range parts {
		group.Go(func() error {
			defer func() {
				if v := recover(); v != nil {
					p, nested := v.(*Panic)
					if !nested {
						p = &Panic{v, debug.Stack()}
					}
					panicked.Store(p)
				}
			}()
			return part()
		})
	}
	err := group.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return err
}
