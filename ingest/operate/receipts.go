package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

const readingLog = "log: records"

// ReceiptsOptions say how much of the log is proven, and by what.
type ReceiptsOptions struct {
	// Sample proves a random one in Sample blocks, chosen again at each run; 0 and 1 for all.
	Sample uint64
	// Headers follows the parent hashes of all blocks from the chain's final block down to the lowest proven one, which
	// costs one header for each block on the way. Otherwise a block's hash is compared with that of a second endpoint.
	Headers bool
	// Progress is called often, from several goroutines; it may be nil.
	Progress backup.Progress
}

// ReceiptsReport is the result of proving the log's amounts.
type ReceiptsReport struct {
	ChainID    uint64 `json:"chainId"`
	FinalBlock uint64 `json:"finalBlock"` // blocks above it are not checked
	Blocks     int    `json:"blocks"`     // blocks up to FinalBlock with logs of the vaults in the log
	Chosen     int    `json:"chosen"`     // how many of them were proven: all or a sample
	// Proven blocks have the same logs in the log as in their receipts, the receipts hash to the root in the header,
	// and the header to the block's hash. Logs counts their logs.
	Proven int `json:"proven"`
	Logs   int `json:"logs"`
	// Confirmed are proven blocks whose hash has a second source: another endpoint, or the chain of parent hashes below
	// Anchor.
	Confirmed int    `json:"confirmed"`
	Anchor    *Place `json:"anchor,omitempty"` // with ReceiptsOptions.Headers
	// Unprovable blocks are no evidence against the log, Wrong ones are.
	Unprovable int       `json:"unprovable"`
	Wrong      int       `json:"wrong"`
	Findings   []Finding `json:"findings,omitempty"` // both kinds, the first maxFindings
	// Misled are endpoints that returned wrong receipts although another endpoint returned the chain's.
	Misled []string               `json:"misled,omitempty"`
	Calls  []registry.MethodCalls `json:"calls"`
}

// Finding is a block that an endpoint does not prove. As an error it is the endpoint's verdict; any other error means
// that the endpoint failed, and may prove the block later.
type Finding struct {
	Block    uint64 `json:"block"`
	Hash     string `json:"hash"`
	Endpoint string `json:"endpoint"`
	Wrong    bool   `json:"wrong"` // otherwise it cannot be proven
	Why      string `json:"why"`
}

func (f *Finding) Error() string {
	return fmt.Sprintf("block %d (%s) at %s: %s", f.Block, f.Hash, f.Endpoint, f.Why)
}

// maxFindings is how many findings a report lists; all are counted.
const maxFindings = 100

// Err returns nil unless a block is wrong.
func (r *ReceiptsReport) Err() error {
	if r.Wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s in the log differ from the chain", r.Wrong, printable.Count(r.Chosen, "block"))
}

// String returns the report as text for operators.
func (r *ReceiptsReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chain %d has %s up to the final block %d; compared: %d\n",
		r.ChainID, printable.Count(r.Blocks, "block with logs of the vaults", "blocks with logs of the vaults"),
		r.FinalBlock, r.Chosen)
	fmt.Fprintf(&b, "proven by their receipts: %s with %s\n", printable.Count(r.Proven, "block"),
		printable.Count(r.Logs, "log"))
	switch {
	case r.Anchor != nil:
		fmt.Fprintf(&b, "hash confirmed by the parent hashes below block %d (%s): %s; compare that hash with a source "+
			"that you trust\n", r.Anchor.Number, r.Anchor.Hash, printable.Count(r.Confirmed, "block"))
	case r.Confirmed > 0:
		fmt.Fprintf(&b, "hash confirmed by a second endpoint: %s\n", printable.Count(r.Confirmed, "block"))
	case r.Proven > 0:
		fmt.Fprintln(&b, "no second source confirms the hashes of these blocks: add a second endpoint to chain.rpc, or "+
			"use --headers")
	}
	if r.Unprovable > 0 {
		fmt.Fprintf(&b, "cannot be proven: %s\n", printable.Count(r.Unprovable, "block"))
	}
	if r.Wrong > 0 {
		fmt.Fprintf(&b, "WRONG: %s\n", printable.Count(r.Wrong, "block"))
	}
	for _, f := range r.Findings {
		verdict := "cannot be proven"
		if f.Wrong {
			verdict = "is wrong"
		}
		fmt.Fprintf(&b, "  block %d (%s) %s, at %s: %s\n", f.Block, f.Hash, verdict, f.Endpoint, f.Why)
	}
	if left := r.Unprovable + r.Wrong - len(r.Findings); left > 0 {
		fmt.Fprintf(&b, "  and %d more\n", left)
	}
	for _, name := range r.Misled {
		fmt.Fprintf(&b, "%s returned receipts that are not the chain's: another endpoint returned the right ones\n", name)
	}
	spent := registry.Spent(r.Calls)
	fmt.Fprintf(&b, "this took %s, %s, %s\n", printable.Count(spent.Calls, "call"), printable.Count(spent.Bytes, "byte"),
		printable.Count(spent.Units, "unit"))
	return b.String()
}

// Place is a block.
type Place struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

// Log is a log, and the nodes of its chain.
type Log struct {
	ChainID uint64
	Kafka   chainlog.Config
	Nodes   *rpc.Pool
	Mapped  *mapping.Vaults
}

// Receipts proves a log by receipts, at one time. It is used once.
type Receipts struct {
	Log
	Cursor   *event.Cursor // of the log
	InFlight int           // blocks that are proven at the same time
	Finality rpc.Finality

	progress backup.Progress
	mu       sync.Mutex
	report   *ReceiptsReport
	done     uint64
}

// Prove proves every final block that has logs of the vaults in the log, or a sample. It returns an error if the nodes
// fail; wrong blocks are in the report.
func (p *Receipts) Prove(ctx context.Context, o ReceiptsOptions) (*ReceiptsReport, error) {
	p.progress, p.report = o.Progress, &ReceiptsReport{ChainID: p.ChainID, FinalBlock: p.Cursor.GetFinalBlock()}
	blocks, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(blocks),
		func(*loggedBlock) bool { return o.Sample > 1 && rand.Uint64N(o.Sample) != 0 })
	if len(chosen) == 0 && len(blocks) > 0 {
		chosen = []*loggedBlock{blocks[rand.IntN(len(blocks))]}
	}
	p.report.Blocks, p.report.Chosen = len(blocks), len(chosen)
	if err := p.all(ctx, chosen, o.Headers); err != nil {
		return nil, err
	}
	p.report.Calls = p.Nodes.Calls()
	slices.Sort(p.report.Misled)
	slices.SortFunc(p.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Block, b.Block) })
	return p.report, nil
}

func (p *Receipts) read(ctx context.Context) ([]*loggedBlock, error) {
	cursor := p.Cursor
	x, err := p.index(ctx, func(e chainlog.Entry) bool {
		p.progress.Report(readingLog, min(e.GetSeq(), cursor.GetSeq()), cursor.GetSeq())
		return e.GetSeq() <= cursor.GetSeq() && e.GetLog().GetBlockNumber() <= cursor.GetFinalBlock()
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(x), func(a, b *loggedBlock) int { return cmp.Compare(b.number, a.number) }), nil
}

func (p *Receipts) all(ctx context.Context, chosen []*loggedBlock, headers bool) error {
	work, each := errgroup.WithContext(ctx)
	work.SetLimit(p.InFlight)
	for _, b := range chosen {
		if each.Err() != nil {
			break
		}
		work.Go(func() error { return p.block(each, b, !headers) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	if headers && len(chosen) > 0 {
		return p.chain(ctx, chosen)
	}
	return nil
}

// withAnyNode calls ask with an endpoint and, after an error, with the others, a few times each.
func (p *Receipts) withAnyNode(ctx context.Context, ask func(*rpc.Node) error) error {
	const each = 3
	var wait rpc.Backoff
	for try := 1; ; try++ {
		n, err := p.Nodes.Current(ctx)
		if err == nil {
			err = ask(n)
		}
		if err == nil || ctx.Err() != nil || rpc.Refused(err) || try == each*p.Nodes.Size() {
			return err
		}
		p.Nodes.Next()
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}

// block proves one block. It is wrong if an endpoint contradicts it and no other one proves it. While one that might
// prove it fails, it is proven again later.
func (p *Receipts) block(ctx context.Context, b *loggedBlock, confirm bool) error {
	var wrong *Finding // while an endpoint that failed may prove the block
	err := p.withAnyNode(ctx, func(n *rpc.Node) error {
		err := p.proveBlock(ctx, n, b)
		var found *Finding
		if err != nil && !errors.As(err, &found) {
			return err
		}
		confirmed := false
		if found == nil && confirm {
			found, confirmed = p.confirm(ctx, n, b)
		} else if found != nil { // if another endpoint proves the block, its hash rests only on that one
			by, findings, open := p.proveAtOthers(ctx, n, err,
				func(other *rpc.Node) error { return p.proveBlock(ctx, other, b) })
			if ctx.Err() != nil {
				return ctx.Err() // a verdict needs all endpoints
			}
			if found = worstFinding(findings); by != nil {
				p.noteRefuted(findings)
				found = nil
			} else if open && found.Wrong {
				wrong = found
				return fmt.Errorf("an endpoint fails that may prove block %d", b.number)
			}
		}
		p.note(b, found, confirmed)
		return nil
	})
	if err != nil && wrong != nil && ctx.Err() == nil {
		p.note(b, wrong, false)
		return nil
	}
	return err
}

// proveAtOthers calls the other endpoints about a block that n does not prove, until one proves it, by. findings are
// the verdicts against the block, that of n included if it is one. open reports whether an endpoint may prove the block
// later.
func (l Log) proveAtOthers(
	ctx context.Context, n *rpc.Node, err error, prove func(*rpc.Node) error,
) (by *rpc.Node, findings []*Finding, open bool) {
	judged := func(err error) {
		var f *Finding
		if errors.As(err, &f) {
			findings = append(findings, f)
		}
	}
	judged(err)
	for other, err := range l.Nodes.Others(ctx, n) {
		if err != nil {
			continue
		}
		err := prove(other)
		if err == nil {
			return other, findings, false
		}
		judged(err)
	}
	return nil, findings, len(findings) < l.Nodes.Serving()
}

// worstFinding returns the first finding against the log, even if others cannot prove anything, or else the first one.
func worstFinding(findings []*Finding) *Finding {
	against := slices.IndexFunc(findings, func(f *Finding) bool { return f.Wrong })
	return findings[max(0, against)]
}

// noteRefuted notes the endpoints whose findings against the log another endpoint refutes.
func (p *Receipts) noteRefuted(findings []*Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range findings {
		if f.Wrong && !slices.Contains(p.report.Misled, f.Endpoint) {
			p.report.Misled = append(p.report.Misled, f.Endpoint)
		}
	}
}

// confirm compares the hash of a block that n proved with that of another endpoint. confirmed is false if none has it.
func (p *Receipts) confirm(ctx context.Context, n *rpc.Node, b *loggedBlock) (found *Finding, confirmed bool) {
	for other, err := range p.Nodes.Others(ctx, n) {
		if err != nil {
			continue
		}
		theirs, err := other.ByNumber(ctx, b.number)
		switch {
		case err != nil:
		case theirs.Hash == b.hash:
			return nil, true
		default:
			return &Finding{b.number, b.hash.Hex(), other.Name, true, fmt.Sprintf("its hash there is %s", theirs.Hash)}, false
		}
	}
	return nil, false
}

func (p *Receipts) note(b *loggedBlock, found *Finding, confirmed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.progress.Report("receipts: blocks", p.done, uint64(p.report.Chosen))
	if found == nil {
		p.report.Proven++
		p.report.Logs += len(b.logs)
		if confirmed {
			p.report.Confirmed++
		}
		return
	}
	b.failed = true
	if found.Wrong {
		p.report.Wrong++
	} else {
		p.report.Unprovable++
	}
	p.add(found)
}

func (p *Receipts) add(f *Finding) {
	if len(p.report.Findings) < maxFindings {
		p.report.Findings = append(p.report.Findings, *f)
	}
}

// proveBlock proves a block by one endpoint. The hash is the log's, so an endpoint that has no such block, or another
// one of this hash, contradicts the log.
func (p *Receipts) proveBlock(ctx context.Context, n *rpc.Node, b *loggedBlock) error {
	err := p.prove(ctx, n, b.number, b.hash, p.covering(b.number), b.logs)
	var wrong *chainproof.WrongError
	switch {
	case errors.As(err, &wrong):
		return &Finding{b.number, b.hash.Hex(), n.Name, true, wrong.Error()}
	case errors.Is(err, rpc.ErrNoBlock):
		return &Finding{b.number, b.hash.Hex(), n.Name, true, "it is not in the chain"}
	}
	return err
}

// callsPerProof is the number of calls that prove makes.
const callsPerProof = 2

// prove proves by one endpoint that logs are those of these vaults in the block with this hash. It returns a *Finding
// if they are not, or if the endpoint cannot prove it, as for a log that no receipts root covers.
func (l Log) prove(ctx context.Context, n *rpc.Node, number uint64, hash common.Hash, vaults []common.Address,
	logs []digest) error {
	var block *chainproof.Block
	header, receipts, err := n.Receipts(ctx, hash)
	if err == nil {
		block, err = chainproof.Prove(hash, header, receipts)
	}
	var unprovable *chainproof.UnprovableError
	switch {
	case errors.As(err, &unprovable), errors.Is(err, rpc.ErrNoReceipts):
		return &Finding{number, hash.Hex(), n.Name, false, err.Error()}
	case err != nil:
		return fmt.Errorf("block %d (%s) at %s: %w", number, hash, n.Name, err)
	}
	var ours []digest
	for _, l := range logs {
		if out := block.Unproven(l.index); out != nil {
			err = &Finding{number, hash.Hex(), n.Name, false, out.Error()}
		} else {
			ours = append(ours, l)
		}
	}
	contracts := map[common.Address]bool{}
	for _, a := range l.Mapped.Contracts(vaults) {
		contracts[a] = true
	}
	if why := describeDifference(ours, l.Mapped.Belonging(vaults, block.Logs(contracts))); why != "" {
		return &Finding{number, hash.Hex(), n.Name, true, why}
	}
	return err
}

func (p *Receipts) covering(number uint64) (vaults []common.Address) {
	for _, v := range p.Cursor.GetVaults() {
		if v.GetStartBlock() <= number && number <= v.GetCoveredTo() {
			vaults = append(vaults, common.Address(v.GetAddress()))
		}
	}
	return vaults
}

// describeDifference describes how the log differs from the chain in a block; empty if it does not.
func describeDifference(ours []digest, chain []*event.Log) string {
	slices.SortFunc(ours, func(a, b digest) int { return cmp.Compare(a.index, b.index) })
	for i := range max(len(ours), len(chain)) {
		switch {
		case i >= len(ours):
			return fmt.Sprintf("the log lacks log %d, of vault %s", chain[i].LogIndex, mapping.VaultOf(chain[i]))
		case i >= len(chain):
			return fmt.Sprintf("the log has a log %d, of vault %s, that the chain does not have", ours[i].index, ours[i].vault)
		case ours[i] != digestOf(chain[i]):
			return fmt.Sprintf("the log's log %d, of vault %s, is not the chain's log %d, of vault %s: a field differs",
				ours[i].index, ours[i].vault, chain[i].LogIndex, mapping.VaultOf(chain[i]))
		}
	}
	return ""
}

// chain follows the parent hashes from the chain's final block down to the lowest chosen block, and confirms the chosen
// blocks, which are highest first.
func (p *Receipts) chain(ctx context.Context, chosen []*loggedBlock) error {
	var anchor *rpc.Header
	err := p.withAnyNode(ctx, func(n *rpc.Node) error {
		tip, err := n.Latest(ctx)
		if err != nil {
			return err
		}
		final, err := finalBlock(ctx, p.Finality, n, tip)
		if err == nil {
			anchor, err = n.ByNumber(ctx, max(final, chosen[0].number))
		}
		return err
	})
	if err != nil {
		return err
	}
	p.report.Anchor = &Place{anchor.Number, anchor.Hash.Hex()}
	hash, number, lowest := anchor.Hash, anchor.Number, chosen[len(chosen)-1].number
	for left := chosen; ; {
		p.progress.Report("headers: blocks below the final one", anchor.Number-number, anchor.Number-lowest)
		first := max(lowest, number-min(number, rpc.MaxBatchHeaders-1))
		err := p.withAnyNode(ctx, func(n *rpc.Node) error {
			headers, err := n.Headers(ctx, first, number)
			if err != nil {
				return err
			}
			if top := headers[len(headers)-1]; top.Hash != hash {
				return fmt.Errorf("block %d at %s is %s, but the block above it names %s as its parent", number, n.Name, top.Hash,
					hash)
			}
			for _, h := range headers {
				if err := checkSealed(n, h); err != nil {
					return err
				}
			}
			for _, h := range slices.Backward(headers) {
				if len(left) > 0 && left[0].number == h.Number {
					p.compare(n, left[0], h.Hash)
					left = left[1:]
				}
			}
			hash = headers[0].Parent
			return nil
		})
		if err != nil {
			return fmt.Errorf("follow the parent hashes below block %d: %w", number, err)
		}
		if first == lowest {
			return nil
		}
		number = first - 1
	}
}

// checkSealed returns a *Finding for a header whose fields do not hash to its hash: it proves nothing.
func checkSealed(n *rpc.Node, h *rpc.Header) error {
	if h.Sealed {
		return nil
	}
	return &Finding{h.Number, h.Hash.Hex(), n.Name, false, "the fields of its header do not hash to its hash"}
}

func (p *Receipts) compare(n *rpc.Node, b *loggedBlock, hash common.Hash) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case b.failed:
	case hash == b.hash:
		p.report.Confirmed++
	default:
		b.failed = true
		p.report.Wrong, p.report.Proven, p.report.Logs = p.report.Wrong+1, p.report.Proven-1, p.report.Logs-len(b.logs)
		p.add(&Finding{b.number, b.hash.Hex(), n.Name, true, fmt.Sprintf("below the final block its hash is %s", hash)})
	}
}
