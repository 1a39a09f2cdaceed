package devchain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	compiled "github.com/navlog/navlog/schemas/contracts/abi"
)

// callTimeout is how long a transaction may stay unmined: several blocks of a slow development chain.
const callTimeout = time.Minute

// The maximum price of a unit of gas, in wei. A development chain charges one gwei or less.
var (
	gasTip   = big.NewInt(1e9)
	gasPrice = big.NewInt(100e9)
)

// account signs for one actor. Its key is derived from its name, so anyone can derive it: it is for development chains,
// which give it its gas money, and worthless anywhere else.
type account struct {
	key     *ecdsa.PrivateKey
	address common.Address
}

func newAccount(name string) account {
	// A Keccak hash is an invalid key with a probability of only 2^-128.
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("navlog development chain: " + name)))
	if err != nil {
		panic(fmt.Sprintf("the name %q gives no key: %v", name, err))
	}
	return account{key, crypto.PubkeyToAddress(key.PublicKey)}
}

var (
	owner     = newAccount("owner")
	oracle    = newAccount("oracle")
	manager   = newAccount("manager")
	custodian = newAccount("custodian")
)

// chain is a connection to an anvil node. It caches nothing that a reorganisation could invalidate: nonces and balances
// are read again for every transaction.
type chain struct {
	rpc *rpc.Client
	*ethclient.Client
	id       *big.Int
	patience time.Duration
	// blockTime is the number of seconds from a block's time to that of the block of the next transaction, whatever the
	// wall clock says, so that the result does not depend on the speed of the machine. With 0 the node sets the times.
	blockTime uint64
}

func dial(ctx context.Context, rpcURL string) (*chain, error) {
	client, err := rpc.DialContext(ctx, rpcURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the development chain: %w", err)
	}
	c := &chain{rpc: client, Client: ethclient.NewClient(client), patience: callTimeout}
	if c.id, err = c.ChainID(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("ask the development chain for its chain id: %w", err)
	}
	return c, nil
}

// send signs and sends one transaction and waits until it is mined. It fails if the transaction reverts.
func (c *chain) send(ctx context.Context, from account, call transaction) (*types.Receipt, error) {
	if err := c.fund(ctx, from.address); err != nil {
		return nil, err
	}
	if c.blockTime > 0 {
		now, err := c.now(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.setNextTime(ctx, now+c.blockTime); err != nil {
			return nil, err
		}
	}
	opts, err := bind.NewKeyedTransactorWithChainID(from.key, c.id)
	if err != nil {
		return nil, fmt.Errorf("sign for %s: %w", from.address, err)
	}
	// set here, so that the client does not request them
	opts.Context, opts.GasTipCap, opts.GasFeeCap = ctx, gasTip, gasPrice
	tx, err := call(opts)
	if err != nil {
		return nil, explain(err)
	}
	return c.mined(ctx, tx.Hash())
}

// fund keeps an account supplied with ether, which is free on a development chain.
func (c *chain) fund(ctx context.Context, a common.Address) error {
	balance, err := c.BalanceAt(ctx, a, nil)
	if err != nil {
		return fmt.Errorf("read the ether balance of %s: %w", a, err)
	}
	ether := big.NewInt(1e18)
	if balance.Cmp(ether) >= 0 {
		return nil
	}
	thousand := new(big.Int).Mul(ether, big.NewInt(1000))
	if err := c.rpc.CallContext(ctx, nil, "anvil_setBalance", a, (*hexutil.Big)(thousand)); err != nil {
		return fmt.Errorf("give %s ether, which needs an anvil development chain: %w", a, err)
	}
	return nil
}

func (c *chain) mined(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	waiting, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if err := c.mine(waiting); err != nil && waiting.Err() == nil { // the loop reports whose deadline has passed
		return nil, err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) { // most nodes have it at once, or nearly
		receipt, err := c.TransactionReceipt(waiting, hash)
		switch {
		case err == nil && receipt.Status == types.ReceiptStatusSuccessful:
			return receipt, nil
		case err == nil:
			return nil, fmt.Errorf("transaction %s reverted in block %s", hash, receipt.BlockNumber)
		case !errors.Is(err, ethereum.NotFound) && waiting.Err() == nil:
			return nil, fmt.Errorf("read the receipt of transaction %s: %w", hash, err)
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("transaction %s was not mined within %s: a reorganisation may have dropped it, or the "+
				"chain does not advance", hash, c.patience)
		}
	}
}

// mine mines pending transactions, unless the node has already done so. It does not wait for a node that mines at
// intervals, because steps with several transactions would take as many blocks.
func (c *chain) mine(ctx context.Context) error {
	var automine bool
	if err := c.rpc.CallContext(ctx, &automine, "anvil_getAutomine"); err != nil {
		return fmt.Errorf("ask how the chain mines, which needs an anvil development chain: %w", err)
	}
	if automine {
		return nil
	}
	if err := c.rpc.CallContext(ctx, nil, "evm_mine"); err != nil {
		return fmt.Errorf("mine a block: %w", err)
	}
	return nil
}

// now returns the time of the newest block, in Unix seconds.
func (c *chain) now(ctx context.Context) (uint64, error) {
	head, err := c.HeaderByNumber(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("read the newest block: %w", err)
	}
	return head.Time, nil
}

// jumpTo advances the chain's time to t, in Unix seconds, and mines a block with that time.
func (c *chain) jumpTo(ctx context.Context, t uint64) error {
	if err := c.setNextTime(ctx, t); err != nil {
		return err
	}
	if err := c.rpc.CallContext(ctx, nil, "evm_mine"); err != nil {
		return fmt.Errorf("mine a block: %w", err)
	}
	return nil
}

// setNextTime sets the time of the next block. The clock of a restarted node is the machine's, which may already be
// ahead of that time: then the node sets it.
func (c *chain) setNextTime(ctx context.Context, t uint64) error {
	err := c.rpc.CallContext(ctx, nil, "evm_setNextBlockTimestamp", hexutil.Uint64(t))
	if err != nil && !strings.Contains(err.Error(), "lower than previous block's timestamp") {
		return fmt.Errorf("set the time of the next block: %w", err)
	}
	return nil
}

// explain names the contract's own error if a node reports that a call would revert. It then omits the node's message,
// into which anvil puts the raw bytes.
func explain(err error) error {
	var data rpc.DataError
	if !errors.As(err, &data) {
		return err
	}
	text, _ := data.ErrorData().(string)
	raw, decodeErr := hexutil.Decode(text)
	if decodeErr != nil || len(raw) < 4 {
		return err
	}
	for _, contract := range []string{"ReferenceVault", "ReferenceDepositRouter"} {
		parsed, _ := compiled.Contract(contract)
		if e, abiErr := parsed.ErrorByID([4]byte(raw)); abiErr == nil {
			if arguments, abiErr := e.Inputs.Unpack(raw[4:]); abiErr == nil {
				return fmt.Errorf("the contract reverts with %s%v", e.Name, arguments)
			}
		}
	}
	return err
}
