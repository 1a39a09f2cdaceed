package ask

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Panic is the value that a part of Together panicked with, and the stack.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Together runs independent parts concurrently and returns the first error. If a part panics, Together panics with a
// *Panic: a panic in a separate goroutine would not be recovered, and would end the program.
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
