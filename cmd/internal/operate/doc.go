// Package operate is the operator's commands on the log itself: reading it, and copying it to files and back. The
// commands need Kafka and the id of the chain, and no program.
package operate
