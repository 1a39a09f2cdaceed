// Package workload makes up the log of a chain that is as unkind as real ones are, for benchmarks to fill read models with:
// a figure that holds only on a kind history is not a figure.
//
//   - every 400 blocks the last 1 to 8 of them are taken back, and what they said comes again in other blocks;
//   - a router contract is the owner of a tenth as many deposits as there are events: one user with a million of them;
//   - one partner has a sixth of all deposits;
//   - 30,000 withdrawal requests are open at any time, and one in 200 never closes, so that the open ones of a past block
//     are spread over the whole history;
//   - users are as skewed as those of real protocols (Zipf), and arrive during four fifths of the history, heavy ones late too.
//
// A chain is a function of its options: it is made up again, without being written again, to go on with it.
package workload
