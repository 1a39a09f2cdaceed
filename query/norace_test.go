//go:build !race

package query

// raceDetector says whether the race detector watches this build.
const raceDetector = false
