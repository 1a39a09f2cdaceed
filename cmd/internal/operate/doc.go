// Package operate is the operator's commands that read the log, and what other commands need to reach it. They need
// Kafka and the id of the chain, and no program.
package operate
