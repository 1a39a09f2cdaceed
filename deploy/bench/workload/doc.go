// Package workload generates the log of a chain that is as difficult as real ones, from which benchmarks fill read
// models: a figure that holds only for an easy history is worthless.
//
//   - every 400 blocks the last 1 to 8 blocks are orphaned, and their events appear again in other blocks;
//   - a router contract owns a tenth as many deposits as there are events: one user with a million of them;
//   - one partner has a sixth of all deposits;
//   - 30,000 withdrawal requests are open at any time, and one in 200 never closes, so that the requests open at a past
//     block are spread over the whole history;
//   - users are as skewed as those of real protocols (Zipf), and arrive during four fifths of the history, some heavy
//     ones late.
//
// A chain is a function of its options: to continue it, a program generates the existing part again without writing it.
package workload
