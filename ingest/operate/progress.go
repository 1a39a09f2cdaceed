package operate

// Progress is called with the current step of a command and how much of it is done; of is 0 if the total is unknown. It
// is called often and must return at once. It may be nil.
type Progress func(what string, done, of uint64)

// Tell calls p, unless it is nil.
func (p Progress) Tell(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// ReadingLog is the name of the step that reads the whole log.
const ReadingLog = "log: records"
