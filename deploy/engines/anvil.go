package engines

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"
)

// An Anvil is a running development chain. Its accounts and keys are the well-known ones of the test mnemonic.
type Anvil struct {
	URL   string // http://
	WSURL string // ws://
	Pid   int

	proc *process
}

// AnvilOptions are what a development chain may differ in. The zero value is a good one. A chain that is continued must
// be given the options that it was begun with.
type AnvilOptions struct {
	Port         int           // 0 chooses a free one
	ChainID      uint64        // 0 is 31337
	BlockTime    time.Duration // a block each BlockTime; 0 is a block per transaction
	NoMining     bool          // blocks only by the anvil_mine and evm_mine calls
	SlotsInEpoch int           // finalized is two epochs behind the head; 0 is anvil's own, 32
	Accounts     int           // funded accounts; 0 is anvil's own, 10
	Timestamp    uint64        // Unix seconds of the genesis block, from which the chain's clock runs; 0 is now
	States       int           // newest blocks whose state can be asked for (eth_call) or reorganised away; 0 is 256
	Optimism     bool          // takes the deposits of the OP stack, and hashes their receipts as it does since Canyon
	Fleeting     bool          // the chain is never written and ends with its process: for large ones, which are slow to write
}

const (
	anvilName = "anvil"
	// stateInterval is how often anvil writes its whole chain: about 2 kB a block, 30 ms for 5,000 of them.
	stateInterval = 5 * time.Second
	// defaultStates covers two epochs several times over. Anvil's own way, every state kept, costs 100 kB a block on
	// disk for a chain without contracts.
	defaultStates = 256
)

// StartAnvil starts a development chain, or continues the one whose state is in dir. It returns when it answers.
//
// Blocks, transactions, receipts and logs are kept, and of the state the newest block's: an eth_call at a block from
// before the restart fails, and so does a reorganisation that would reach behind it. The chain is written to dir when
// anvil ends in good order, which its warden sees to even where the parent is killed, and every 5 seconds. Only anvil's
// own sudden end loses the blocks since.
func StartAnvil(ctx context.Context, dir string, opts AnvilOptions) (*Anvil, error) {
	bin, err := anvilBinary()
	if err != nil {
		return nil, err
	}
	dir, lock, err := lockDir(ctx, anvilName, dir)
	if err != nil {
		return nil, err
	}
	state, err := anvilState(dir)
	if err == nil {
		opts.Port, err = claimPort(anvilName, opts.Port)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	if opts.ChainID == 0 {
		opts.ChainID = 31337
	}
	a := &Anvil{URL: "http://" + addr(opts.Port), WSURL: "ws://" + addr(opts.Port)}
	a.proc, err = launch(anvilName, dir, lock, childSpec{
		Kind: wardenKind, Path: bin, Dir: dir, Args: append([]string{anvilName}, opts.args(dir, state)...),
		// One attempt: anvil writes its whole chain before it goes.
		Stop: []stopStep{{int(syscall.SIGTERM), 20 * time.Second}},
	})
	if err != nil {
		return nil, err
	}
	a.Pid = a.proc.pid
	if err := a.proc.waitReady(ctx, func(ctx context.Context) error { return a.answers(ctx, opts.ChainID) }); err != nil {
		return nil, err
	}
	return a, nil
}

// args is anvil's command line. state is the file to continue from, "" for a new chain.
func (o AnvilOptions) args(dir, state string) []string {
	args := []string{
		"--quiet", "--host", loopback, "--port", strconv.Itoa(o.Port), "--chain-id", strconv.FormatUint(o.ChainID, 10),
		"--cache-path", filepath.Join(dir, "cache"), "--prune-history", strconv.Itoa(cmp.Or(o.States, defaultStates)),
	}
	if !o.Fleeting {
		args = append(args, "--dump-state", filepath.Join(dir, dumpFile), "--state-interval", strconv.Itoa(int(stateInterval.Seconds())))
	}
	if state != "" {
		args = append(args, "--load-state", state)
	} else if o.Timestamp > 0 {
		// Only at the beginning: a chain that is continued would go on counting from here.
		args = append(args, "--timestamp", strconv.FormatUint(o.Timestamp, 10))
	}
	if o.BlockTime > 0 {
		args = append(args, "--block-time", strconv.FormatFloat(o.BlockTime.Seconds(), 'f', -1, 64))
	}
	if o.NoMining {
		args = append(args, "--no-mining")
	}
	if o.Optimism {
		args = append(args, "--network", "optimism")
	}
	if o.SlotsInEpoch > 0 {
		args = append(args, "--slots-in-an-epoch", strconv.Itoa(o.SlotsInEpoch))
	}
	if o.Accounts > 0 {
		args = append(args, "--accounts", strconv.Itoa(o.Accounts))
	}
	return args
}

// answers is nil once the chain answers and its clock is right. A continued chain starts with the machine's clock even
// where its own was ahead (evm_increaseTime), and would make blocks older than their parents.
func (a *Anvil) answers(ctx context.Context, chainID uint64) error {
	client, err := ethclient.DialContext(ctx, a.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	id, err := client.ChainID(ctx)
	if err != nil {
		return err
	}
	if id.Uint64() != chainID {
		return fmt.Errorf("the chain has id %s instead of %d", id, chainID)
	}
	head, err := client.HeaderByNumber(ctx, nil)
	if err != nil {
		return err
	}
	if head.Time > uint64(time.Now().Unix()) {
		return client.Client().CallContext(ctx, nil, "evm_setTime", head.Time)
	}
	return nil
}

// anvilBinary is the npm package's own binary: without its install script the package's launcher is of no use.
func anvilBinary() (string, error) {
	return moduleFile(runtime.GOOS+"-"+runtime.GOARCH, "@foundry-rs/anvil-", "bin/anvil")
}

// Close stops the chain in good order, its state written, and waits until it is gone.
func (a *Anvil) Close() error { return a.proc.stop() }

// Kill ends anvil by SIGKILL and waits until it is gone. The blocks since its last written state are lost.
func (a *Anvil) Kill() { a.proc.kill() }
