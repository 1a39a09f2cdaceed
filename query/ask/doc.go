// Package ask asks the read model about one state, and finds out whether it was one state.
//
//	          ┌─────────── made again at a newer snapshot ◀──┐
//	          ▼                                              │ yes
//	Snapshot ─▶ Pin ─▶ questions ─▶ rows, cursor ─▶ rewritten at the pin's block, or below?
//	                                                         │ no
//	                                                         └──▶ sent
//
// A Pin is a snapshot, the newest block or that of asOfBlock, and the number of units that
// had rewritten something (rewrites). What is true at a block does not change when later blocks
// arrive, so a question to lists says the block alone, and reads the cursor in the same
// statement as its rows: another number of rewrites there means that a unit since may have
// changed what was read, and the snapshot says down to which block. Questions to events say
// seq <= S and block <= X, and are exact whatever is written meanwhile. Lists that only know
// the newest block must be of the pin's seq.
//
// So an answer is exact or it is not there, and never a mixture of two beliefs. An error of a
// handler that saw such rows is not believed either.
//
// Each question names the lists and owners that it reads. They are the Validity of the
// answer: it is right until one of them is touched, or an open request that it shows lapses.
package ask
