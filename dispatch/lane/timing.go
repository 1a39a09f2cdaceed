package lane

import "time"

// Timing is what tests shorten: the retries and the deadline that partners are told
// of (schemas/openapi), and a lane's own pauses.
type Timing struct {
	Retries  []time.Duration // waits before each retry, jitter added on top
	Deadline time.Duration   // of a POST: DNS, connection, TLS, headers and body
	OpenMin  time.Duration   // first open time of a breaker
	OpenMax  time.Duration
	Idle     time.Duration // a lane without work ends after it; as long as the breaker's window
	Scan     time.Duration // between looks whether the endpoint is still the same
	Database time.Duration // that PostgreSQL may take for one turn
}

// Specified is the timing of every lane but the tests'.
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
