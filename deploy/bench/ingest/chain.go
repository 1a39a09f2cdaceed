package main

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/engines"
)

//go:generate node contract/compile.mjs

// logSource is the creation code of contract/LogSource.sol.
//
//go:embed contract/LogSource.bin
var logSource string

const (
	chainID = 31337
	// userCount is the number of users that the logs of a chain name, if not one.
	userCount = 50_000
	// logsPerRound is the number of logs that emitRounds emits per round.
	logsPerRound = 20
	// txsPerBlock is the number of transactions that share the logs of a block of the dense chain.
	txsPerBlock = 5
	// genesis and blockSeconds give the chain its own clock, so that it is identical in every run.
	genesis      = 1_700_000_000
	blockSeconds = 12
	// slotsInEpoch makes the block two below the newest one final, because the benchmark measures a backfill of final
	// blocks.
	slotsInEpoch = 1
	callGas      = 25_000_000
)

// A chain is an anvil node with one vault whose logs the benchmark decides.
type chain struct {
	*engines.Anvil
	vault common.Address
	start uint64 // block that created the vault
	tip   uint64
	logs  uint64
	navs  uint64 // number of valuations: the newest, in block lastNav, reports navs units
	last  uint64 // block of the newest log

	rpc   *rpc.Client
	from  common.Address
	nonce uint64
}

// newChain starts an empty chain in dir and creates the vault, whose logs name that many users.
func newChain(ctx context.Context, dir string, users int, fleeting bool) (*chain, error) {
	c := &chain{}
	if err := c.open(ctx, dir, fleeting); err != nil {
		return nil, err
	}
	if err := c.create(ctx, users); err != nil {
		return nil, errors.Join(fmt.Errorf("make the chain: %w", err), c.Close())
	}
	return c, nil
}

// open starts the node in dir, continuing an existing chain.
func (c *chain) open(ctx context.Context, dir string, fleeting bool) (err error) {
	c.Anvil, err = engines.StartAnvil(ctx, dir, engines.AnvilOptions{
		ChainID: chainID, NoMining: true, SlotsInEpoch: slotsInEpoch, Timestamp: genesis, Fleeting: fleeting,
	})
	if err != nil {
		return err
	}
	if c.rpc, err = rpc.DialContext(ctx, c.URL); err != nil {
		return errors.Join(fmt.Errorf("connect to the chain: %w", err), c.Close())
	}
	return nil
}

// startSparse starts a chain of about that many blocks; one block in every has a log.
func startSparse(ctx context.Context, dir string, blocks, every int) (*chain, error) {
	c, err := newChain(ctx, dir, 1, false)
	if err != nil {
		return nil, err
	}
	if err := c.valuations(ctx, blocks/every); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	height, err := stretch(dir, c.start+1, uint64(every), c.tip-c.last)
	if err != nil {
		return nil, err
	}
	c.last, c.tip = height-(c.tip-c.last), height
	if err := c.open(ctx, dir, true); err != nil {
		return nil, err
	}
	if err := c.check(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *chain) create(ctx context.Context, users int) error {
	var accounts []common.Address
	if err := c.rpc.CallContext(ctx, &accounts, "eth_accounts"); err != nil {
		return err
	}
	if len(accounts) == 0 {
		return errors.New("the node has no accounts")
	}
	c.from = accounts[0]
	if err := c.rpc.CallContext(ctx, nil, "anvil_setBlockTimestampInterval", blockSeconds); err != nil {
		return err
	}
	code, err := hex.DecodeString(strings.TrimSpace(logSource))
	if err != nil {
		return fmt.Errorf("read the contract's code: %w", err)
	}
	c.vault = crypto.CreateAddress(c.from, c.nonce)
	deployment := map[string]any{"data": hexutil.Bytes(append(code, word(uint64(users))...))}
	if err := c.send(ctx, deployment); err != nil {
		return err
	}
	if err := c.mine(ctx, 1); err != nil {
		return err
	}
	c.start = c.tip
	var deployed hexutil.Bytes
	if err := c.rpc.CallContext(ctx, &deployed, "eth_getCode", c.vault, "latest"); err != nil {
		return err
	}
	if len(deployed) == 0 {
		return errors.New("the contract was not created")
	}
	return nil
}

// dense adds blocks with the same number of logs each, and enough blocks above them to make them final.
func (c *chain) dense(ctx context.Context, blocks, logs int) error {
	perBlock := logs / blocks
	for range blocks {
		if err := c.block(ctx, perBlock); err != nil {
			return err
		}
	}
	return c.finalise(ctx)
}

// block mines one block with that many logs, a multiple of logsPerRound.
func (c *chain) block(ctx context.Context, logs int) error {
	rounds, txs := logs/logsPerRound, 1
	if rounds%txsPerBlock == 0 {
		txs = txsPerBlock
	}
	calls := make([]map[string]any, txs)
	for i := range calls {
		calls[i] = c.call("emitRounds(uint256)", uint64(rounds/txs))
	}
	if err := c.send(ctx, calls...); err != nil {
		return err
	}
	c.logs, c.navs, c.last = c.logs+uint64(logs), c.navs+uint64(rounds), c.tip+1
	return c.mine(ctx, 1)
}

// valuations adds blocks with one log each, and makes them final.
func (c *chain) valuations(ctx context.Context, blocks int) error {
	for range blocks {
		if err := c.send(ctx, c.call("emitNav()")); err != nil {
			return err
		}
		c.logs, c.navs, c.last = c.logs+1, c.navs+1, c.tip+1
		if err := c.mine(ctx, 1); err != nil {
			return err
		}
	}
	return c.finalise(ctx)
}

// finalise mines blocks until the newest log is final: the node calls a block final if it is two epochs below its head.
func (c *chain) finalise(ctx context.Context) error {
	if err := c.mine(ctx, 2*slotsInEpoch); err != nil {
		return err
	}
	return c.check(ctx)
}

// final returns the highest block that the node calls final.
func (c *chain) final() uint64 { return c.tip - 2*slotsInEpoch }

// check verifies that the chain at the node has the intended logs: a call that ran out of gas leaves no log.
func (c *chain) check(ctx context.Context) error {
	var answer hexutil.Bytes
	query := map[string]any{"to": c.vault, "data": selector("navCount()")}
	if err := c.rpc.CallContext(ctx, &answer, "eth_call", query, "latest"); err != nil {
		return err
	}
	if n := new(big.Int).SetBytes(answer); !n.IsUint64() || n.Uint64() != c.navs {
		return fmt.Errorf("the vault counts %s valuations instead of %d", n, c.navs)
	}
	var tip hexutil.Uint64
	if err := c.rpc.CallContext(ctx, &tip, "eth_blockNumber"); err != nil {
		return err
	}
	if uint64(tip) != c.tip {
		return fmt.Errorf("the chain has %d blocks instead of %d", tip, c.tip)
	}
	return nil
}

func (c *chain) call(signature string, arguments ...uint64) map[string]any {
	data := selector(signature)
	for _, a := range arguments {
		data = append(data, word(a)...)
	}
	return map[string]any{"to": c.vault, "data": data}
}

// send adds transactions to the pool, in this order.
func (c *chain) send(ctx context.Context, calls ...map[string]any) error {
	batch := make([]rpc.BatchElem, len(calls))
	for i, tx := range calls {
		tx["from"], tx["gas"], tx["nonce"] = c.from, hexutil.Uint64(callGas/len(calls)), hexutil.Uint64(c.nonce)
		c.nonce++
		batch[i] = rpc.BatchElem{Method: "eth_sendTransaction", Args: []any{tx}, Result: new(common.Hash)}
	}
	if err := c.rpc.BatchCallContext(ctx, batch); err != nil {
		return fmt.Errorf("send transactions: %w", err)
	}
	for _, b := range batch {
		if b.Error != nil {
			return fmt.Errorf("send a transaction: %w", b.Error)
		}
	}
	return nil
}

func (c *chain) mine(ctx context.Context, blocks int) error {
	if err := c.rpc.CallContext(ctx, nil, "anvil_mine", hexutil.Uint64(blocks), hexutil.Uint64(blockSeconds)); err != nil {
		return fmt.Errorf("mine %d blocks: %w", blocks, err)
	}
	c.tip += uint64(blocks)
	return nil
}

func selector(signature string) hexutil.Bytes { return crypto.Keccak256([]byte(signature))[:4] }

func word(v uint64) []byte { return common.LeftPadBytes(new(big.Int).SetUint64(v).Bytes(), 32) }
