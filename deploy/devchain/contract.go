package devchain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	compiled "github.com/navlog/navlog/schemas/contracts/abi"
)

// Contract is one of the contracts of schemas/contracts at its address. Its methods are called by name; go-ethereum
// appends 0 to the name of an overload with a partner, such as deposit0.
type Contract struct {
	*bind.BoundContract
	address common.Address
	name    string
}

// At returns the contract of that name at an address.
func At(node bind.ContractBackend, name string, address common.Address) *Contract {
	parsed, _ := compiled.Contract(name)
	return &Contract{bind.NewBoundContract(address, parsed, node, node, node), address, name}
}

// Read calls a view of a contract.
func Read[T any](opts *bind.CallOpts, c *Contract, method string, arguments ...any) (result T, err error) {
	var results []any
	if err := c.Call(opts, &results, method, arguments...); err != nil {
		return result, fmt.Errorf("read %s of %s: %w", method, c.name, explain(err))
	}
	return *abi.ConvertType(results[0], new(T)).(*T), nil
}

// read is Read at the newest block.
func read[T any](ctx context.Context, c *Contract, method string, arguments ...any) (T, error) {
	return Read[T](&bind.CallOpts{Context: ctx}, c, method, arguments...)
}

// transaction makes a transaction.
type transaction = func(*bind.TransactOpts) (*types.Transaction, error)

// call returns the transaction that calls a method.
func (c *Contract) call(method string, arguments ...any) transaction {
	return func(o *bind.TransactOpts) (*types.Transaction, error) { return c.Transact(o, method, arguments...) }
}

// create creates a contract, and returns it with the receipt.
func (c *chain) create(
	ctx context.Context, from account, name string, arguments ...any,
) (*Contract, *types.Receipt, error) {
	parsed, code := compiled.Contract(name)
	receipt, err := c.send(ctx, from, func(o *bind.TransactOpts) (*types.Transaction, error) {
		_, tx, _, err := bind.DeployContract(o, parsed, code, c, arguments...)
		return tx, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("deploy %s: %w", name, err)
	}
	return At(c, name, receipt.ContractAddress), receipt, nil
}
