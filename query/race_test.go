//go:build race

package query

// raceDetector reports whether the race detector is built in.
const raceDetector = true
