// Package status holds what a running ingest reports about itself: its status, for /status and `navlog status`, its
// metrics, and how fast it reads a history. All parts of ingest report to one Tracker, and only `navlog ingest` reads
// it.
package status
