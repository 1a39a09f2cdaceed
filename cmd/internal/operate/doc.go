// Package operate implements the operator's commands that read the log, and connects other commands to it. They need
// Kafka and the id of the chain, but no running program.
package operate
