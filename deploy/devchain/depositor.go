package devchain

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Depositor makes deposits in a vault, each in a block of its own, that are fully deterministic: the same deposit on
// the same block makes the same block.
type Depositor struct {
	from  account
	chain *chain
	vault *vault
}

// NewDepositor mines the blocks that give a depositor its assets. The caller must close it.
func NewDepositor(ctx context.Context, rpcURL string, v Vault) (*Depositor, error) {
	c, err := dial(ctx, rpcURL)
	if err != nil {
		return nil, err
	}
	d := &Depositor{from: newAccount("depositor"), chain: c}
	c.blockTime = 10
	if d.vault, err = bindVault(ctx, c, v); err == nil {
		err = d.send(ctx, d.vault.asset.call("mint", d.from.address, big.NewInt(1e12)))
	}
	if err == nil {
		err = d.send(ctx, d.vault.asset.call("approve", v.Address, maxUint256))
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("prepare a depositor: %w", err)
	}
	return d, nil
}

// Deposit deposits whole units of the asset for a partner, ten seconds after the parent block.
func (d *Depositor) Deposit(ctx context.Context, units int64, partner uint32) error {
	return d.send(ctx, d.vault.call("deposit0", big.NewInt(units*1_000_000), d.from.address, partner))
}

func (d *Depositor) send(ctx context.Context, call transaction) error {
	// Reverting to a snapshot does not restore the base fee.
	if err := d.chain.rpc.CallContext(ctx, nil, "anvil_setNextBlockBaseFeePerGas", hexutil.Uint64(1e9)); err != nil {
		return fmt.Errorf("set the base fee: %w", err)
	}
	_, err := d.chain.send(ctx, d.from, call)
	return err
}

// Close closes the connection to the chain.
func (d *Depositor) Close() { d.chain.Close() }
