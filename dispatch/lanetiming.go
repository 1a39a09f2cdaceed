package dispatch

import "time"

// laneTiming is what tests shorten: the retries and the deadline that partners are told
// of (schemas/openapi), and a lane's own pauses.
type laneTiming struct {
	retries  []time.Duration // waits before each retry, jitter added on top
	deadline time.Duration   // of a POST: DNS, connection, TLS, headers and body
	openMin  time.Duration   // first open time of a breaker
	openMax  time.Duration
	idle     time.Duration // a lane without work ends after it; as long as the breaker's window
	scan     time.Duration // between looks whether the endpoint is still the same
	database time.Duration // that PostgreSQL may take for one turn
}

// specifiedLane is the timing of every lane but the tests'.
func specifiedLane() laneTiming {
	return laneTiming{
		retries:  []time.Duration{time.Second, 5 * time.Second, 15 * time.Second},
		deadline: 10 * time.Second,
		openMin:  5 * time.Second,
		openMax:  15 * time.Minute,
		idle:     breakerWindow,
		scan:     time.Second,
		database: 10 * time.Second,
	}
}
