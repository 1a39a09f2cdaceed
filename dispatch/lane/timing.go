package lane

import "time"

// Timing holds the durations that tests shorten: the retries and the deadline documented
// for partners (schemas/openapi), and a lane's own pauses.
type Timing struct {
	Retries  []time.Duration // waits before each retry, plus jitter
	Deadline time.Duration   // of a POST: DNS, connection, TLS, headers and body
	OpenMin  time.Duration   // first open time of a breaker
	OpenMax  time.Duration
	Idle     time.Duration // a lane without work ends after it; as long as the breaker's window
	Scan     time.Duration // between checks whether the endpoint has changed
	Database time.Duration // limit of PostgreSQL's work in one turn
}

// Specified returns the timing that every lane outside of tests uses.
func Specified() Timing {
	return Timing{
		Retries:  []time.Duration{time.Second, 5 * time.Second, 15 * time.Second},
		Deadline: 10 * time.Second,
		OpenMin:  5 * time.Second,
		OpenMax:  15 * time.Minute,
		Idle:     breakerWindow,
		Scan:     time.Second,
		Database: 10 * time.Second,
	}
}
