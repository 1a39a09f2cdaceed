// Package query is the read side of navlog: read models in, HTTP answers out.
//
// # One request, one state
//
// A background loop looks at the live generation in ClickHouse, when project
// announces that it wrote and otherwise now and then (listener.go), and keeps what
// it saw as the snapshot: the generation, S (the smallest
// cursor of its tables), the newest block indexed at S, and the vaults. Each
// request takes the snapshot once and pins itself to it; every question that
// it asks says `seq <= S`, so an answer never mixes two states, however many
// questions it is made of. asOfBlock=X adds `block <= X` and judges expiry by
// the time of the newest block indexed up to X; asOfSeq=S' pins to an older S.
//
//	registry: live generation, states of programs ──1 s──▶ registryView ─┐
//	ClickHouse: cursors, newest block, vaults ──LISTEN──▶ snapshot ◀─────┘
//	                                                         │
//	request ─▶ limit ─▶ key ─▶ cache of the snapshot ─▶ slot ─▶ parameters ─▶ pin ─▶ questions (sql/*.sql) ─▶ answer
//
// A finished answer is a function of generation, S and request. It is kept with
// the snapshot, and the most popular ones are made anew when S moves (cache.go).
// What answers about the newest block have in common, the queue for one, is read
// before the snapshot is served, where the last ones' requests wanted it, and else
// by the first of them, and belongs to the snapshot too (head.go). All of it, and
// the snapshot itself, is made of what it was in the one before and of the rows
// with a later seq, which the engine finds by the seqs that its parts know. What a
// block brings is read once for all of that: the records say what each log did, and
// which other tables have more to say (news.go).
//
// # Rows that undo rows
//
// Nothing is ever deleted from a read model: a retraction adds rows. Counts
// and sums are sums over signed rows. A list of deposits, NAV updates or
// sweeps shows the rows with sign 1 whose seq no retraction names, and the state
// of a withdrawal request is the fold of such rows: the first of each kind says
// what was asked, and when it was funded and claimed. What a log did to the
// queue and to a user's place in a list stands in its row as a difference, so
// that both are sums, at every seq and (the queue) up to every block.
//
// A bound by seq keeps ClickHouse from answering out of the totals that every
// part holds. So the queue takes these totals whole and subtracts the rows that
// are newer than S (queue.go), as a partner's statistics do at the newest block; a
// page of who came first takes them where nothing in them is newer (users.go). As of
// a block a vault's number of users, and those statistics where spans do not tell them
// (brought.go), take the totals of all blocks but some thousands around it, and these by
// row (partner.go, vaults.go). Where the table has moved on before those, all rows are
// read.
//
// # The past
//
// As of a block the lists of users are mostly those of the seq that the log had
// then, which is told by the spans: between which seqs the logs of each 4,096
// blocks are (spans.go). They begin from what they were at a checkpoint near the
// block and from what the logs between the two did, which the table records tells
// in the order of the chain (checkpoints.go), and so do the queue and the number of
// a vault's users (standing.go). What time it was at a block, and how far the log,
// is in the calendar of its span (calendar.go), and what its logs did to the vaults in
// its moves (moves.go). serve reads checkpoints, calendars and moves once it sees a
// generation (fill.go) and keeps them packed (pack.go), and beside them what a partner
// that asked brought in each span (brought.go).
//
// # What a question costs
//
// Where few rows are read, and that is nearly always, the engine spends more on
// the text of a question than on the rows: every condition, level and column is
// paid for, and so is each projection or index that it looks for in vain. So
// questions leave out what every row meets (needed in sql.go), have literals for
// parameters (withValues there), say which projection is theirs, and are planned by
// the engine's older analyzer where that can (unhurried there). Each part of a table
// is paid for too: a question about the past is held to the seq that the log had
// reached by the end of its span, and parts written since are passed over (lastLog in
// pin.go). A user's rows, a vault's newest and its deposits that wait, which are mostly
// few, are put into order here (list.go, unswept.go); and questions of one answer that
// do not wait for each other are asked at once.
//
// # When things fail
//
// Without a snapshot an answer is 503; with ClickHouse gone, so is one that is
// not in the cache. With PostgreSQL gone the partner routes are 503, for a key
// older than a second is not trusted, and the public ones go on with the
// generation last known. A late or frozen chain fails nothing: it shows as
// X-Chain-State. With more requests than there are slots, the ones that would
// wait too long are 503 and the health endpoints go on (slots.go).
package query
