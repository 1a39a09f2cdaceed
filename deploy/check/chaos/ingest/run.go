// Package ingest tries to make ingest lose or duplicate a log or a sample, and checks that it does not.
//
// A plan says what happens: that of a seed (see PlanOf), or a chosen one, for each way in which nodes fail or give
// false data (endpoints_test.go). Only the order of things that happen at the same time is left to chance. Of every
// three seeds, one has an endpoint with false data about finality and the head, one has an endpoint with false data
// about the head and the headers of blocks, and one has neither. A false endpoint is accompanied by two honest
// endpoints, and chain.agreement is 2.
//
//	script ──────▶ anvil: traffic, empty blocks, reorganisations, branches that come back
//	                 │
//	           fault proxies, one per endpoint, each with faults, rates and draws of its own
//	                 │
//	              ingest, a process of its own ──▶ Kafka (embedded or Apache)
//	                 │                                │
//	deaths ──▶ SIGKILL at a step of a transaction     │
//	           or at some moment; SIGSTOP and takeover  │
//	                                                  ▼
//	anvil, by block hash, past the proxies ──────▶ oracle
//
// Processes that die are restarted. At the end of the script the proxies become honest, and ingest must reach the head
// by itself; then the oracle compares. It shares no code with ingest: it folds the raw records of the topics, and reads
// every branch of the chain, before it is orphaned, from block receipts and from logs by block hash.
package ingest

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// A Result is the outcome of one plan. It passed if First is empty.
type Result struct {
	verdict
	Counts     map[string]int // number of faults, deaths and operations, by kind
	Transcript string         // plan, injections, ingest's output
}

// Cases returns how many single things were done to ingest.
func (r Result) Cases() (n int) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Try tries one plan with its engines in dir, which it removes. brokers are those of a shared Kafka, if there is one.
func Try(ctx context.Context, plan Plan, dir string, brokers []string) (r Result) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer os.RemoveAll(dir)
	w, err := newWorld(ctx, plan, dir, brokers)
	if err != nil {
		r.First = err.Error()
		return r
	}
	defer w.close()
	var line string
	if r.verdict, line, err = w.play(); err != nil {
		r.First = fmt.Sprintf("%s: %v", line, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Counts = w.counts
	r.Transcript = fmt.Sprintf("%+v\ninjected:\n%s\noutput of the last ingest:\n%s", plan,
		strings.Join(w.injections, "\n"), w.sup.outputTail())
	return r
}

// play runs the script from its first operation to the verdict. On an error, line is the operation that failed.
func (w *world) play() (v verdict, line string, err error) {
	for _, o := range w.plan.Before {
		if err = w.do(o); err != nil {
			return v, "before the start", err
		}
	}
	w.sup.start()
	for i, o := range w.plan.Script {
		if err = w.do(o); err == nil {
			err = w.sup.err()
		}
		if err != nil {
			return v, fmt.Sprintf("line %d of the script (%+v)", i+1, o), err
		}
	}
	if err = w.finish(); err != nil {
		// The content of the log says more than the error that ingest made no progress.
		v, _ = w.checkLog()
		return v, "after the script", err
	}
	ended := w.sup.stop(true)
	if v, err = w.checkLog(); err != nil {
		return v, "the verdict", err
	}
	return v, "at the end", ended
}
