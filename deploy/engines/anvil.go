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
	*process
}

// AnvilOptions configure a development chain. The zero value is a good default. A chain that is continued must be given
// the options with which it was created.
type AnvilOptions struct {
	ChainID      uint64        // 0 is 31337
	BlockTime    time.Duration // one block per BlockTime; 0 is one block per transaction
	NoMining     bool          // mines blocks only on anvil_mine and evm_mine calls
	SlotsInEpoch int           // finalized is two epochs behind the head; 0 is anvil's default, 32
	Timestamp    uint64        // time of the genesis block in Unix seconds, where the chain's clock starts; 0 is now
	States       int           // newest blocks whose state is kept for eth_call and reorganisations; 0 is 256
	Optimism     bool          // accepts deposits of the OP stack, and hashes their receipts as it does since Canyon
	// the chain is never written and ends with its process: for large chains, which are slow to write
	Fleeting bool
}

const (
	anvilName = "anvil"
	// stateInterval is how often anvil writes its whole chain: about 2 kB per block, 30 ms for 5,000 blocks.
	stateInterval = 5 * time.Second
	// defaultStates covers several epochs. Anvil's default, keeping every state, costs 100 kB of disk space per block
	// even for a chain without contracts.
	defaultStates = 256
)

// StartAnvil starts a development chain, or continues the one whose state is in dir. It returns when the chain
// responds.
//
// Blocks, transactions, receipts and logs survive a restart, but only the newest block's state does: an eth_call at a
// block before the restart fails, and so does a reorganisation that would reach below it. Anvil writes the chain to dir
// every 5 seconds and at a graceful shutdown, which its supervisor ensures even if the parent is killed. Only if anvil
// itself is killed, the blocks since the last write are lost.
func StartAnvil(ctx context.Context, dir string, opts AnvilOptions) (*Anvil, error) {
	bin, err := anvilBinary()
	if err != nil {
		return nil, err
	}
	if opts.ChainID == 0 {
		opts.ChainID = 31337
	}
	a := new(Anvil)
	a.process, err = start(ctx, anvilName, dir, func(dir string) (childSpec, error) {
		state, err := anvilState(dir)
		if err != nil {
			return childSpec{}, err
		}
		port, err := claimPort(anvilName, 0)
		a.URL, a.WSURL = "http://"+addr(port), "ws://"+addr(port)
		return childSpec{
			Kind: supervisorKind, Path: bin, Dir: dir, Args: append([]string{anvilName}, opts.args(dir, state, port)...),
			// Only one step: anvil writes its whole chain before it exits.
			Stop: []stopStep{{int(syscall.SIGTERM), 20 * time.Second}},
		}, err
	}, func(ctx context.Context) error { return a.answers(ctx, opts.ChainID) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// args returns anvil's command line. state is the file to continue from, "" for a new chain.
func (o AnvilOptions) args(dir, state string, port int) []string {
	args := []string{
		"--quiet", "--host", loopback, "--port", strconv.Itoa(port), "--chain-id", strconv.FormatUint(o.ChainID, 10),
		"--cache-path", filepath.Join(dir, "cache"), "--prune-history", strconv.Itoa(cmp.Or(o.States, defaultStates)),
	}
	if !o.Fleeting {
		args = append(args, "--dump-state", filepath.Join(dir, dumpFile), "--state-interval",
			strconv.Itoa(int(stateInterval.Seconds())))
	}
	if state != "" {
		args = append(args, "--load-state", state)
	} else if o.Timestamp > 0 {
		// Only for a new chain: a continued one would restart its clock from here.
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
	return args
}

// answers returns nil once the chain responds and its clock is right. A continued chain starts with the machine's clock
// even if its own was ahead (evm_increaseTime), and would create blocks older than their parents.
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

// anvilBinary returns the npm package's own binary, because the package's launcher does not work without its install
// script.
func anvilBinary() (string, error) {
	return moduleFile(runtime.GOOS+"-"+runtime.GOARCH, "@foundry-rs/anvil-", "bin/anvil")
}

// Watch waits until ctx ends and returns nil, or until the chain has exited by itself and returns the reason as far as
// its output shows it. Its folder remains, and another start continues with it.
func (a *Anvil) Watch(ctx context.Context) error {
	return a.watch(ctx, "Start it again: the chain is kept, except for its last seconds")
}
