package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/time/rate"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// vaultBooks are what the live logs of one vault give for its views, in native units.
type vaultBooks struct {
	// totals are the results of the views without arguments, by their names.
	totals map[string]*big.Int
	queue  map[uint64]*request
}

// request is a request as the view requests of a vault returns it. Of those of the log, only what is compared is set.
type request struct {
	Owner          common.Address
	ExpiresAt      uint64
	PartnerID      uint32 `abi:"partnerId"`
	Receiver       common.Address
	Status         uint8
	Shares         *big.Int
	AssetsEstimate *big.Int
	Assets         *big.Int
}

// The numbers of the contract's enum of a request's status.
const (
	pending uint8 = iota
	funded
	claimed
	cancelled
	expired
)

// chainCheck compares the log with the chain at the newest indexed block.
type chainCheck struct {
	client   *ethclient.Client
	url      string
	patience time.Duration
	pace     *rate.Limiter
	progress Progress
	report   *Report
	head     *event.Block
	vaults   map[common.Address]*vaultBooks
	mapped   *mapping.Vaults
	covered  map[common.Address]*event.Coverage
	// Live logs by block hash, in the order of the chain.
	logs map[common.Hash][]*event.Log
	// samples are live samples of NAV, in the order of the log.
	samples []*event.Sample
	// numbers are the numbers of the blocks that the log has: those with logs, and those recorded as indexed. order
	// has them in chain order.
	numbers map[common.Hash]uint64
	order   []common.Hash
	// most is the maximum number of blocks in one request, width the current number.
	most, width uint64
}

// nodeTimeout bounds one request to a node, so that a hanging node leads to an error.
const nodeTimeout = 30 * time.Second

// againstChain compares live records up to the seq of a cursor, oldest first, with a node: each block that the log
// has, by its height and its hash, and its logs; each vault's totals, queue and valuation by eth_call at the newest
// indexed block; some samples of NAV by eth_call at their blocks; and the logs of all blocks by ranges, because the
// log may have lost a block completely. Blocks and ranges may be sampled; everything is limited to what the log
// covers of each vault. A node that does not respond is an error, a difference is not.
func againstChain(ctx context.Context, options Options, cursor *event.Cursor, records []*event.Record,
	mapped *mapping.Vaults, report *Report) error {
	c := &chainCheck{
		url: options.Node, patience: cmp.Or(options.patience, nodeTimeout), pace: rate.NewLimiter(rate.Inf, 1),
		progress: options.Progress, report: report, mapped: mapped,
		vaults: map[common.Address]*vaultBooks{}, covered: map[common.Address]*event.Coverage{},
		logs:    map[common.Hash][]*event.Log{},
		numbers: map[common.Hash]uint64{}, most: cmp.Or(options.BatchBlocks, wholeRange),
	}
	c.width = c.most
	if options.RequestsPerSecond > 0 {
		c.pace.SetLimit(rate.Limit(options.RequestsPerSecond))
	}
	for _, v := range cursor.GetVaults() {
		c.covered[common.Address(v.GetAddress())] = v
	}
	for _, r := range records {
		c.add(r)
	}
	c.order = inOrder(c.numbers)
	if err := c.connect(ctx, cursor.GetChainId()); err != nil {
		return err
	}
	defer c.client.Close()
	if err := c.compareLogs(ctx, options.Sample); err != nil {
		return err
	}
	for _, address := range slices.SortedFunc(maps.Keys(c.vaults), common.Address.Cmp) {
		if err := c.compareVault(ctx, address, c.vaults[address]); err != nil {
			return err
		}
	}
	if err := c.compareSamples(ctx); err != nil {
		return err
	}
	return c.compareRanges(ctx, options.Sample)
}

// connect checks that the node serves the log's chain.
func (c *chainCheck) connect(ctx context.Context, chainID uint64) error {
	err := c.call(ctx, func(ctx context.Context) error {
		client, err := rpc.DialOptions(ctx, c.url, rpc.WithHTTPClient(contracts.NodeClient(http.DefaultTransport)))
		c.client = ethclient.NewClient(client)
		return err
	})
	if err != nil {
		return fmt.Errorf("connect to the chain's node: %w", err)
	}
	var id *big.Int
	err = c.call(ctx, func(ctx context.Context) (err error) {
		id, err = c.client.ChainID(ctx)
		return err
	})
	if err == nil && (!id.IsUint64() || id.Uint64() != chainID) {
		c.client.Close()
		return &contracts.OtherChainError{Text: fmt.Sprintf("the node serves chain %s, but the log is of chain %d: give "+
			"another chain.rpc", id, chainID)}
	}
	if err != nil {
		c.client.Close()
		return fmt.Errorf("request the chain id of the node (chain.rpc): %w; is the node up and the URL right?", err)
	}
	return nil
}

// call sends one request to the node, when the rate limit allows it and within the timeout. The error contains no part
// of the URL that may be a key.
func (c *chainCheck) call(ctx context.Context, question func(context.Context) error) error {
	if err := c.pace.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the rate limit of %s: %w", contracts.EndpointName(c.url), err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	err := question(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s did not respond within %s: %w", contracts.EndpointName(c.url), c.patience,
			context.DeadlineExceeded)
	}
	if long := new(http.MaxBytesError); errors.As(err, &long) {
		return fmt.Errorf("the response of %s has more than %d MiB", contracts.EndpointName(c.url), contracts.MaxAnswer>>20)
	}
	return contracts.Discreet(err, c.url)
}

// covers reports whether the log must have a vault's logs of a block. It rightly lacks the blocks before the vault's
// start, and, for a vault that was removed or has not caught up, the blocks after the last one that was read.
func (c *chainCheck) covers(address common.Address, number uint64) bool {
	v := c.covered[address]
	return v != nil && v.GetStartBlock() <= number && number <= v.GetCoveredTo()
}

func (c *chainCheck) covering(number uint64) (addresses []common.Address) {
	for address := range c.covered {
		if c.covers(address, number) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

func (c *chainCheck) add(r *event.Record) {
	switch {
	case r.GetVault() != nil:
		a := common.Address(r.GetVault().GetAddress())
		if c.vaults[a] == nil {
			c.vaults[a] = &vaultBooks{totals: map[string]*big.Int{}, queue: map[uint64]*request{}}
		}
	case r.GetBlock() != nil:
		c.numbers[common.Hash(r.GetBlock().GetHash())] = r.GetBlock().GetNumber()
		if c.head == nil || r.GetBlock().GetNumber() >= c.head.GetNumber() {
			c.head = r.GetBlock()
		}
	case r.GetSample() != nil:
		c.samples = append(c.samples, r.GetSample())
	case r.GetLog() != nil:
		l := r.GetLog()
		hash := common.Hash(l.GetBlockHash())
		c.numbers[hash], c.logs[hash] = l.GetBlockNumber(), append(c.logs[hash], l)
		sources := c.mapped.Of(mapping.VaultOf(l))
		v, plain := c.vaults[sources.Address], sources.Hash == common.Hash{} // has the views of the reference contracts
		if v == nil || !plain {
			return
		}
		if log, sound := sources.FromRecord(l); sound {
			_, effects, fault := sources.One(&log, nil)
			if fault != nil && fault.Large != nil { // included in the contract's own totals
				effects = append(effects, fault.Large.Effect)
			}
			for i := range effects {
				v.add(&effects[i])
			}
		}
	}
}

// add follows the contract's own rules. Anything that they do not allow is reported as a difference of the totals.
func (v *vaultBooks) add(e *mapping.Effect) {
	assets, one := e.Assets.ToBig(), big.NewInt(1)
	add := func(view string, amount *big.Int) { v.totals[view] = new(big.Int).Add(v.total(view), amount) }
	move := func(status uint8) *request {
		q := v.queue[e.ID]
		if q == nil {
			q = &request{Shares: new(big.Int), AssetsEstimate: new(big.Int), Assets: new(big.Int)}
			v.queue[e.ID] = q
			add("requestCount", one)
		}
		q.Status = status
		return q
	}
	switch e.Kind {
	case mapping.Deposit:
		add("depositCount", one)
		add("totalDeposited", assets)
		add("totalAssets", assets)
	case mapping.Requested:
		q := move(pending)
		q.Owner, q.Shares, q.AssetsEstimate = e.Owner, e.Shares.ToBig(), assets
	case mapping.Funded:
		move(funded).Assets = assets
	case mapping.Claimed:
		move(claimed)
		add("totalClaimed", assets)
	case mapping.Cancelled:
		move(cancelled)
	case mapping.Expired:
		move(expired)
	case mapping.Valuation:
		add("navCount", one)
		v.totals["totalAssets"] = assets
	case mapping.Sweep:
		add("sweepCount", one)
		v.totals["sweptTo"] = new(big.Int).SetUint64(e.To)
	case mapping.Settled:
		add("settlementCount", one)
		add("totalAssets", assets.Neg(assets))
	}
}

// total returns the expected result of a view.
func (v *vaultBooks) total(view string) *big.Int { return cmp.Or(v.totals[view], new(big.Int)) }

// ofVaults returns the logs that belong to the vaults: their contracts may also emit logs for others.
func (c *chainCheck) ofVaults(returned []types.Log, vaults []common.Address) []types.Log {
	return slices.DeleteFunc(returned, func(l types.Log) bool {
		return !slices.ContainsFunc(vaults,
			func(v common.Address) bool { return c.mapped.Of(v).TakesLog(l.Address, l.Topics) })
	})
}

func inOrder(numbers map[common.Hash]uint64) []common.Hash {
	return slices.SortedFunc(maps.Keys(numbers),
		func(a, b common.Hash) int { return cmp.Or(cmp.Compare(numbers[a], numbers[b]), a.Cmp(b)) })
}

// compareLogs compares the blocks of the log by their hashes. The newest one is in every sample, because the
// vaults' totals are requested there.
func (c *chainCheck) compareLogs(ctx context.Context, sample uint64) error {
	check := Check{Name: "chain: logs by block hash"}
	defer func() { c.report.Checks = append(c.report.Checks, check) }()
	for i, hash := range c.order {
		c.progress.Report(check.Name, uint64(i), uint64(len(c.order)))
		if sample > 1 && rand.Uint64N(sample) != 0 && hash != common.BytesToHash(c.head.GetHash()) {
			continue
		}
		difference, err := c.compareBlock(ctx, c.numbers[hash], hash)
		if err != nil {
			return err
		}
		if difference != "" {
			check.Difference = difference
			return nil
		}
		check.Compared++
	}
	return nil
}

// compareBlock compares one block with the chain's block at its height, and then its logs, and returns the first
// difference, empty if none. The hash comes first: many nodes still return the logs of an orphaned block.
func (c *chainCheck) compareBlock(ctx context.Context, number uint64, hash common.Hash) (difference string, err error) {
	if difference, err = c.compareHash(ctx, number, hash); difference != "" || err != nil {
		return difference, err
	}
	vaults := c.covering(number)
	var returned []types.Log
	if len(vaults) > 0 { // without addresses, this would request all logs
		returned, err = c.ofChain(ctx, ethereum.FilterQuery{BlockHash: &hash, Addresses: c.mapped.Contracts(vaults)})
		if err != nil {
			return c.replaced(ctx, number, hash, fmt.Errorf("request the logs of block %d: %w", number, err))
		}
	}
	if difference = differ(c.logs[hash], c.ofVaults(returned, vaults)); difference != "" {
		return inBlock(number, hash, difference), nil
	}
	return "", nil
}

func inBlock(number uint64, hash common.Hash, difference string) string {
	return fmt.Sprintf("block %d with hash %s: %s", number, hash, difference)
}

// compareHash compares a block's hash with the chain's hash at its height, and returns the difference, empty if none.
func (c *chainCheck) compareHash(ctx context.Context, number uint64, hash common.Hash) (difference string, err error) {
	var now *struct{ Hash common.Hash }
	err = c.call(ctx, func(ctx context.Context) error {
		return c.client.Client().CallContext(ctx, &now, "eth_getBlockByNumber", hexutil.Uint64(number), false)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("request block %d: %w", number, err)
	case now == nil:
		return "", fmt.Errorf("%s has no block %d yet: wait until it is in sync, or give another chain.rpc",
			contracts.EndpointName(c.url), number)
	case now.Hash != hash:
		return inBlock(number, hash,
			fmt.Sprintf("it is no longer part of the chain, which has block %s there; if it was orphaned just now, compare "+
				"again", now.Hash)), nil
	}
	return "", nil
}

// replaced finds out why a node rejects a request about a block. The node may no longer have the block, which every
// node reports differently, so the hash that it has at the height decides. Any other reason is an error.
func (c *chainCheck) replaced(
	ctx context.Context, number uint64, hash common.Hash, fault error,
) (difference string, err error) {
	var refused rpc.Error
	if !errors.As(fault, &refused) {
		return "", fault
	}
	difference, err = c.compareHash(ctx, number, hash)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; and %w", fault, err)
	case difference == "":
		return "", fault
	}
	return difference, nil
}

// differ compares the logs of one block and returns the first difference, empty if none.
func differ(kept []*event.Log, returned []types.Log) string {
	slices.SortFunc(kept, func(a, b *event.Log) int { return cmp.Compare(a.GetLogIndex(), b.GetLogIndex()) })
	for i, l := range kept {
		if i >= len(returned) {
			return fmt.Sprintf("the chain has %d logs, and the log has one more, with index %d", len(returned), l.GetLogIndex())
		}
		s := returned[i]
		same := uint32(s.Index) == l.GetLogIndex() && bytes.Equal(s.Address[:], l.GetAddress()) && l.HasData(s.Data) &&
			bytes.Equal(s.TxHash[:], l.GetTxHash()) && s.BlockNumber == l.GetBlockNumber() && len(s.Topics) == len(l.GetTopics())
		for j := 0; same && j < len(s.Topics); j++ {
			same = bytes.Equal(s.Topics[j][:], l.GetTopics()[j])
		}
		if !same {
			return fmt.Sprintf("log %d of the log and log %d of the chain are not the same", l.GetLogIndex(), s.Index)
		}
	}
	if len(returned) > len(kept) {
		return fmt.Sprintf("the log lacks the chain's log %d of %s", returned[len(kept)].Index, returned[len(kept)].Address)
	}
	return ""
}

// requestPage is the number of withdrawal requests to read in one call.
const requestPage = 200

// compareVault compares a vault's totals at the newest indexed block. A vault without such views is another contract,
// and only its logs are compared; the same applies to one that the log does not cover up to that block, because few
// nodes have older totals.
func (c *chainCheck) compareVault(ctx context.Context, address common.Address, v *vaultBooks) error {
	check := Check{Name: fmt.Sprintf("chain: totals of %s", address.Hex()[:10])}
	defer func() { c.report.Checks = append(c.report.Checks, check) }()
	switch {
	case c.covered[address] == nil:
		check.Difference = "the log has the vault's record, but its cursor does not say how far the vault was read"
		return nil
	case c.head == nil:
		return nil
	case c.mapped.Of(address).Hash != common.Hash{}:
		check.Name += " (its mapping has no views)"
		return nil
	case !c.covers(address, c.head.GetNumber()):
		check.Name += fmt.Sprintf(" (only read up to block %d)", c.covered[address].GetCoveredTo())
		return nil
	}
	return c.compareTotals(ctx, address, v, &check)
}

// compareTotals compares each total, and then the queue.
func (c *chainCheck) compareTotals(ctx context.Context, address common.Address, v *vaultBooks, check *Check) error {
	for _, view := range []string{"totalDeposited", "totalClaimed", "totalAssets", "depositCount", "sweptTo",
		"requestCount", "navCount", "sweepCount", "settlementCount"} {
		want := v.total(view)
		var got *big.Int
		err := c.view(ctx, address, &got, view)
		if lacksView(err) && check.Compared == 0 {
			check.Name += " (no such views)"
			return nil
		}
		if err != nil {
			return c.atHead(ctx, check,
				fmt.Errorf("call %[2]s of vault %[1]s at block %[3]d: %[4]w; a pruned node may not have its state", address,
					view, c.head.GetNumber(), err))
		}
		if got.Cmp(want) != 0 {
			check.Difference = fmt.Sprintf("%s is %s on the chain at block %d, but %s according to the log", view, got,
				c.head.GetNumber(), want)
			return nil
		}
		check.Compared++
	}
	return c.compareQueue(ctx, address, v, check)
}

// atHead turns the error of a view into a difference if the newest indexed block is orphaned.
func (c *chainCheck) atHead(ctx context.Context, check *Check, fault error) error {
	difference, err := c.replaced(ctx, c.head.GetNumber(), common.Hash(c.head.GetHash()), fault)
	check.Difference = difference
	return err
}

// view calls a view of a vault at the newest indexed block and stores its result.
func (c *chainCheck) view(ctx context.Context, vault common.Address, result any, method string,
	arguments ...any) error {
	contract := bind.NewBoundContract(vault, *contracts.VaultABI(), c.client, nil, nil)
	return c.call(ctx, func(ctx context.Context) error {
		return contract.Call(&bind.CallOpts{Context: ctx, BlockHash: common.Hash(c.head.GetHash())}, &[]any{result}, method,
			arguments...)
	})
}

func (c *chainCheck) compareQueue(ctx context.Context, address common.Address, v *vaultBooks, check *Check) error {
	for first := 0; first < len(v.queue); first += requestPage {
		c.progress.Report(check.Name, uint64(first), uint64(len(v.queue)))
		var page []request
		err := c.view(ctx, address, &page, "requests", big.NewInt(int64(first)), big.NewInt(requestPage))
		if err != nil {
			return c.atHead(ctx, check, fmt.Errorf("call vault %s for its requests from %d on: %w", address, first, err))
		}
		if want := min(requestPage, len(v.queue)-first); len(page) != want {
			check.Difference = fmt.Sprintf("requests %d and on: the chain returns %d, but the log has %d", first, len(page),
				want)
			return nil
		}
		for i, returned := range page {
			q := v.queue[uint64(first+i)]
			if q == nil {
				check.Difference = fmt.Sprintf("the log lacks request %d", first+i)
				return nil
			}
			if q.Owner != returned.Owner || q.Status != returned.Status || q.Shares.Cmp(returned.Shares) != 0 ||
				q.AssetsEstimate.Cmp(returned.AssetsEstimate) != 0 || q.Assets.Cmp(returned.Assets) != 0 {
				check.Difference = fmt.Sprintf("request %d is %+v on the chain, and by the log of %s in state %d with %s "+
					"shares, %s estimated, %s funded", first+i, returned, q.Owner, q.Status, q.Shares, q.AssetsEstimate, q.Assets)
				return nil
			}
			check.Compared++
		}
	}
	return nil
}

// lacksView reports whether a call failed because the contract has no such view.
func lacksView(err error) bool {
	var refused rpc.Error
	return errors.Is(err, bind.ErrNoCode) || errors.As(err, &refused) && refused.ErrorCode() == 3 || err != nil &&
		err.Error() == "execution reverted"
}
