package ingest

// Steps names the steps of a transaction, in their order.
func Steps() []string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = string(s)
	}
	return names
}

// OnStep lets f be called at every step of every transaction. It is for tests of
// crashes: f may end the process, or fail the step with an error. It must be
// called before Run.
func (i *Ingest) OnStep(f func(step string) error) {
	i.hook = func(at step) error { return f(string(at)) }
}
