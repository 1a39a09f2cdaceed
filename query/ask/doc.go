// Package ask runs queries against one state of the read model, and detects if the state changed meanwhile.
//
//	          ┌────────── answer is rebuilt at a newer snapshot ◀──┐
//	          ▼                                                    │ yes
//	Snapshot ─▶ Pin ─▶ questions ─▶ rows, cursor ─▶ rewritten at the pin's block, or below?
//	                                                               │ no
//	                                                               └──▶ sent
//
// A Pin is a snapshot, a block (the newest one or that of asOfBlock), and the number of rewriting units so far
// (rewrites). A Question is one statement: a struct of arguments, a file of SQL and a struct of rows. A Page is a
// question for consecutive entries of a list. The same question about several owners or times is one statement, too,
// with a part for each (Question.RowsOfEach, Page.FirstOfEach).
//
// Answers about the newest block of one snapshot share statements for totals and for the queue (lookups): what several
// of them want at the same time is read together, and the totals of vaults and partners are read once per snapshot.
//
// What is true at a block does not change when later blocks arrive. So a question about lists filters by block only,
// and reads the cursor in the same statement as its rows: a different number of rewrites means that a later unit may
// have changed what was read, and the snapshot has the lowest block that changed. Questions about events filter by seq
// <= S and block <= X, and are exact whatever is written meanwhile. Lists that are only valid for the newest block must
// be read at the pin's seq.
//
// So an answer is either exact or not given at all, and it never mixes two states. An error of a handler that read
// rows of another state is discarded, too.
//
// Each question declares the lists and owners that it reads. They form the Validity of the answer: it holds until one
// of them changes, or until an open request that it shows lapses.
package ask
