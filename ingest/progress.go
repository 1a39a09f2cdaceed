package ingest

// Progress hears what a command is doing, and how much of it is done; of is 0 where nobody
// knows how much there is. It is called often and is to return at once. Nil hears nothing.
type Progress func(what string, done, of uint64)

func (p Progress) tell(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// readingLog is what the reading of the whole log is called in progress.
const readingLog = "log: records"
