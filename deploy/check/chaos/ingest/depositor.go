package ingest

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	compiled "github.com/navlog/navlog/schemas/contracts/abi"
)

// A depositor is deterministic: the same deposit on the same block gives the same block.
type depositor struct {
	*world
	from common.Address
}

// prepare gives the depositor what it needs, in separate blocks.
func (d *depositor) prepare() error {
	var accounts []common.Address
	if err := d.chain.CallContext(d.ctx, &accounts, "eth_accounts"); err != nil || len(accounts) == 0 {
		return errors.Join(errors.New("the chain has no accounts"), err)
	}
	d.from = accounts[0]
	vault := d.contracts.Vaults[0]
	if err := d.send(vault.Asset, "MockAsset", "mint", d.from, big.NewInt(1e12)); err != nil {
		return err
	}
	return d.send(vault.Asset, "MockAsset", "approve", vault.Address, big.NewInt(1e15))
}

// deposit mines a block with a deposit that names a partner.
func (d *depositor) deposit(units int64) error {
	return d.send(d.contracts.Vaults[0].Address, "ReferenceVault", "deposit0", big.NewInt(units*1_000_000), d.from, partners[0])
}

// send calls a contract in a block ten seconds after its parent.
func (d *depositor) send(to common.Address, contract, method string, arguments ...any) error {
	parsed, _ := compiled.Contract(contract)
	data, err := parsed.Pack(method, arguments...)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	head, err := d.block("latest")
	if err != nil {
		return err
	}
	if err := d.command("evm_setNextBlockTimestamp", head.Time+10); err != nil {
		return err
	}
	// Reverting to a snapshot does not restore the base fee.
	if err := d.command("anvil_setNextBlockBaseFeePerGas", hexutil.Uint64(1e9)); err != nil {
		return err
	}
	var hash common.Hash
	if err := d.chain.CallContext(d.ctx, &hash, "eth_sendTransaction", map[string]any{
		"from": d.from, "to": to, "data": hexutil.Bytes(data), "gas": hexutil.Uint64(1_000_000), "gasPrice": hexutil.Uint64(2e10),
	}); err != nil {
		return fmt.Errorf("send %s: %w", method, err)
	}
	mined, err := d.eventually(patience, func() (bool, error) {
		var receipt *struct{ Status hexutil.Uint64 }
		err := d.chain.CallContext(d.ctx, &receipt, "eth_getTransactionReceipt", hash)
		if err == nil && receipt != nil && receipt.Status != 1 {
			err = fmt.Errorf("%s reverted", method)
		}
		return receipt != nil, err
	})
	if err == nil && !mined {
		err = fmt.Errorf("%s was not mined within %s", method, patience)
	}
	return err
}
