package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/faultproxy"
	"github.com/navlog/navlog/ingest/proof"
)

// A Plan is everything that a seed determines, or a test chooses.
type Plan struct {
	Seed           uint64 // no two plans that share a broker have the same
	SlotsInEpoch   int    // the chain's finalized block is two epochs below the head
	Finality       uint64 // depth; 0 uses the finalized tag
	Confirmations  uint64 // 0 means final
	BatchBlocks    uint64
	RangesInFlight int
	Window         uint64
	Agreement      int
	Poll           time.Duration
	Standby        time.Duration // how long a writer is silent before another takes over; 0: no waiting
	Late           bool          // the last vault is configured later
	EarlyStart     bool          // start blocks are 0 instead of the vaults' own
	SampleEvery    uint64        // NAV is sampled every so many blocks; 0: never
	Proof          proof.Level
	Endpoints      []Endpoint
	Before         []Op // before the first start
	Script         []Op
	Deaths         []Death // of the processes, in the order of their starts
	FreshEnd       bool    // the last phase begins with a new process
	Proven         bool    // the last phase ends when receipts have proven the log, or have disproven it
}

// An Endpoint is one fault proxy in front of the chain.
type Endpoint struct {
	Seed           uint64
	Faults         []faultproxy.Fault
	Rate           float64
	Behind         uint64
	Ahead          uint64
	RangeLimit     uint64
	ResultLimit    int
	PerSecond      int       // calls; 0: no limit
	Via            *Endpoint // the fault proxy behind this one; nil: the chain
	FalseResponses bool      // gives wrong responses, at its own rate throughout
	Endless        bool      // does not become honest at the end
}

// String is for Via, which would be printed as a pointer.
func (e *Endpoint) String() string { return fmt.Sprintf("%+v", *e) }

// A Death is how one process of ingest ends; the zero value means that it does not.
type Death struct {
	Step string        // it kills itself at this step...
	Nth  int           // ...when it reaches it for the n-th time
	Stop bool          // it stops itself with SIGSTOP instead
	Wait time.Duration // or, if there is no step, it is killed after this time
}

// An Op is one operation of the script.
type Op struct {
	Name string
	N    int     // number of blocks or steps, or a depth
	Step string  // for a takeover: the step at which the replaced process stops
	Keep float64 // for a reorganisation: the share of its transactions that are mined again
	Flag bool
}

// The operations, each with the meaning of N and Flag.
const (
	opTraffic = "traffic" // N steps of the scenario
	opMine    = "mine"    // N empty blocks
	// N blocks, at most down to the final one; Flag: wait first until everything before it is indexed
	opReorg    = "reorg"
	opAgain    = "reorg-again"   // a reorganisation of N blocks, then one of the branch that it created
	opRewind   = "rewind"        // a branch of N blocks, discarded, and a longer one; Flag: the first was indexed
	opReturn   = "a-b-a"         // A, another branch, and A again, N blocks each; Flag: each is indexed
	opSettle   = "settle"        // wait for a limited time until ingest reaches the head; Flag: it must
	opFault    = "fault"         // wait until N faults were injected or ingest reaches the head
	opKill     = "kill"          // SIGKILL now
	opOffline  = "offline"       // N blocks are reorganised while ingest is down; Flag: it shut down gracefully
	opTakeover = "rival"         // a second ingest while the first is stopped by SIGSTOP at Step
	opPair     = "pair"          // two processes start together
	opBroker   = "broker"        // the embedded broker is restarted
	opVault    = "vault"         // the late vault is configured
	opConfirm  = "confirmations" // changes confirmations to N, 0 means final
	opFinality = "finality"      // changes the depth to N
	opRate     = "rate"          // faults occur with a probability of N per cent
)

// Steps of a transaction at which a process can die, as the broker sees them. A transaction with records has at least
// two produce requests: the records, and the cursor.
const (
	stepProduce  = "produce"  // before the records or the cursor are sent
	stepProduced = "produced" // after the broker acknowledged them
	stepEnd      = "end"      // before the end of the transaction is sent
	stepEnded    = "ended"    // after the broker acknowledged it
)

var steps = []string{stepProduce, stepProduced, stepEnd, stepEnded}

// wholeWindow is larger than any chain of a plan.
const wholeWindow = 1024

// toleratedFaults returns the faults that ingest promises to survive. A range of final blocks is accepted if it has
// logs of all vaults and events that the blooms name, although some logs may be missing; chain.receiptsEvery finds
// these later. Blocks further below the head than the window are accepted without the blooms; a stale backend does not
// lag that far behind.
func toleratedFaults(window uint64) []faultproxy.Fault {
	if window == wholeWindow {
		return faultproxy.Except(faultproxy.PartialLogs, faultproxy.TruncatedLogs)
	}
	return faultproxy.Except(faultproxy.PartialLogs, faultproxy.TruncatedLogs, faultproxy.EmptyLogs, faultproxy.WrongHash)
}

// PlanOf returns the plan of a seed.
func PlanOf(seed uint64) Plan {
	d := planRand{rand.New(rand.NewPCG(seed, 0x6e61766c6f67))}
	p := Plan{
		Seed:           seed,
		SlotsInEpoch:   pick(d, 4, 4, 8),
		Finality:       pick[uint64](d, 0, 0, 0, 6, 12, 400),
		Confirmations:  pick[uint64](d, 0, 0, 1, 2, 5),
		BatchBlocks:    pick[uint64](d, 1, 7, 40, 2000),
		RangesInFlight: pick(d, 1, 4),
		Poll:           pick[time.Duration](d, 10, 20, 50) * time.Millisecond,
		Late:           d.one(3),
		EarlyStart:     d.one(3),
		Before:         []Op{{Name: opTraffic, N: 8 + d.IntN(30)}},
		FreshEnd:       d.one(2),
		Standby:        time.Duration(seed%2) * 300 * time.Millisecond,
		Proof:          proof.Headers,
	}
	p.Window = pick[uint64](d, 32, 64, wholeWindow)
	p.Window = max(p.Window, p.Finality)
	for range pick(d, 1, 2) {
		p.Endpoints = append(p.Endpoints, d.endpoint(toleratedFaults(p.Window)))
	}
	p.Agreement = pick(d, 1, len(p.Endpoints))
	for range 4 + d.IntN(5) {
		p.Deaths = append(p.Deaths, d.death())
	}
	p.Script = d.script(&p)
	switch seed % 3 {
	case 1: // finality is decided by the nodes' tag
		p.Finality = 0
		d.useFalseEndpoint(&p, append(aboutFinality, faultproxy.FutureHead, faultproxy.ShortLogs, faultproxy.BeyondHead))
	case 2:
		// nothing is final, so that agreement is required for every block: it does not apply to a history that is read as
		// ranges
		p.Finality, p.Window = nothingFinal, max(p.Window, nothingFinal)
		d.useFalseEndpoint(&p, []faultproxy.Fault{faultproxy.FutureHead, faultproxy.ZeroBloom, faultproxy.ChangedHeader})
	}
	return p
}

// nothingFinal is deeper than any chain of a plan.
const nothingFinal = 400

var aboutFinality = []faultproxy.Fault{faultproxy.FinalHead, faultproxy.FinalFuture, faultproxy.FinalBack}

// useFalseEndpoint replaces the endpoints with one that gives false responses and two whose responses are true,
// although they may be slow or broken. Ingest only promises to survive this with chain.agreement 2 and with the plan's
// rule of finality.
func (d planRand) useFalseEndpoint(p *Plan, faults []faultproxy.Fault) {
	honest := faultproxy.Except(faultproxy.Stale, faultproxy.OldHead, faultproxy.EmptyLogs, faultproxy.PartialLogs,
		faultproxy.TruncatedLogs, faultproxy.WrongHash, faultproxy.ShortLogs, faultproxy.BeyondHead)
	wrong := d.endpoint(nil)
	wrong.Faults, wrong.Rate, wrong.FalseResponses = faults, pick(d, 0.5, 1), true
	p.Agreement, p.Endpoints = 2, []Endpoint{d.endpoint(honest), d.endpoint(honest)}
	p.Endpoints = slices.Insert(p.Endpoints, d.IntN(3), wrong)
	p.Script = slices.DeleteFunc(p.Script, func(o Op) bool { return o.Name == opFinality })
}

type planRand struct{ *rand.Rand }

// one returns true one time in n.
func (d planRand) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d planRand, from ...T) T { return from[d.IntN(len(from))] }

// endpoint draws the faults of one endpoint: either all kinds, rarely, or only those of logs and ranges, often, because
// requests for logs are few.
func (d planRand) endpoint(faults []faultproxy.Fault) Endpoint {
	e := Endpoint{
		Seed: d.Uint64(), Rate: pick(d, 0.01, 0.03, 0.1), Behind: pick[uint64](d, 1, 3, 20),
		Ahead:      pick[uint64](d, 2, 50, 1_000_000),
		RangeLimit: pick[uint64](d, 1, 3, 10), ResultLimit: pick(d, 2, 5, 20),
	}
	if d.one(2) {
		e.Rate = pick(d, 0.1, 0.3, 0.5)
		faults = slices.DeleteFunc(slices.Clone(faults),
			func(f faultproxy.Fault) bool { return !slices.Contains(aboutLogs, f) })
	}
	share := pick(d, 3, 6, 10)
	for _, f := range faults {
		if d.IntN(10) < share {
			e.Faults = append(e.Faults, f)
		}
	}
	return e
}

var aboutLogs = []faultproxy.Fault{
	faultproxy.Stale, faultproxy.EmptyLogs, faultproxy.PartialLogs, faultproxy.TruncatedLogs, faultproxy.WrongHash,
	faultproxy.ShortLogs, faultproxy.BeyondHead,
	faultproxy.RangeResults, faultproxy.ResponseSize, faultproxy.RangeWide, faultproxy.RangeLimited,
	faultproxy.RangeMaximum,
	faultproxy.LimitExceeded, faultproxy.QueryTimeout, faultproxy.Range413, faultproxy.BlockOverLimit,
}

func (d planRand) death() Death {
	if d.one(4) {
		return Death{Wait: time.Duration(30+d.IntN(700)) * time.Millisecond}
	}
	return Death{Step: pick(d, steps...), Nth: 1 + d.IntN(4)}
}

// script draws the operations. It always contains a reorganisation, a reorganisation of a reorganisation, and a branch
// that comes back.
func (d planRand) script(p *Plan) []Op {
	ops := []Op{d.op(opReorg), d.op(opAgain), d.op(opReturn)}
	for range 3 + d.IntN(3) {
		ops = append(ops, d.op(pick(d, opReorg, opRewind, opKill, opOffline, opOffline, opTakeover, opPair, opBroker,
			opConfirm, opFinality, opRate, opMine)))
	}
	if p.Late {
		ops = append(ops, Op{Name: opVault})
	}
	d.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	var script []Op
	for _, o := range ops {
		script = append(script, d.op(opTraffic))
		if d.one(4) {
			script = append(script, d.op(opMine))
		}
		if d.one(2) {
			script = append(script, Op{Name: opSettle})
		}
		script = append(script, o)
	}
	return script
}

func (d planRand) op(name string) Op {
	o := Op{Name: name}
	switch name {
	case opTraffic:
		o.N = 1 + d.IntN(4)
	case opMine:
		o.N = 1 + d.IntN(9)
	case opReorg, opAgain:
		o.N, o.Keep, o.Flag = pick(d, 1, 1, 2, 3, 5, 8, 30), pick(d, 0, 0.5, 1), d.one(2)
	case opRewind, opReturn:
		o.N, o.Flag = 1+d.IntN(3), !d.one(3)
	case opOffline:
		o.N, o.Keep, o.Flag = pick(d, 1, 2, 5, 30), pick(d, 0, 0.7), d.one(2)
	case opTakeover:
		o.Step = pick(d, steps...)
	case opConfirm:
		o.N = pick(d, 0, 1, 2, 5)
	case opFinality:
		o.N = pick(d, 3, 6, 12)
	case opRate:
		o.N = pick(d, 0, 1, 5, 15)
	}
	return o
}
