package oracle

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/schemas/contracts"
)

// A History is everything that a chain says about the vaults at one moment.
type History struct {
	chainID uint64
	router  common.Address
	vaults  []vault
	Times   []uint64 // Unix seconds, by block number
	Facts   []Fact   // in chain order
	Final   uint64   // newest final block
	// contradictory: the facts are not from the reference contracts, so any sequence is possible.
	contradictory bool
}

// A vault is what the contract says about itself.
type vault struct {
	address    common.Address
	startBlock uint64
	name       string
	symbol     string
	decimals   uint8
	preset     string // instead of the reference contracts
	asset      struct {
		address  common.Address
		symbol   string
		decimals uint8
	}
}

// A Fact is one log of a vault, or a NAV sample after all logs of its block. Event is an event of package contracts, a
// withdraw or a transfer, or a pointer to a sample.
type Fact struct {
	Vault common.Address
	Block uint64
	Time  uint64 // Unix seconds
	Tx    common.Hash
	Index uint // of the log in its block
	Event any
}

// Head returns the number of the newest block.
func (h *History) Head() uint64 { return uint64(len(h.Times) - 1) }

// Read reads the chain, which must not change meanwhile.
func Read(ctx context.Context, rpcURL string, deployed *devchain.Contracts) (*History, error) {
	client, err := ethclient.DialContext(ctx, rpcURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the chain: %w", err)
	}
	defer client.Close()
	before, err := client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the newest block: %w", err)
	}
	h := &History{router: deployed.Router}
	if err := h.read(ctx, client, deployed, before.Number.Uint64()); err != nil {
		return nil, err
	}
	after, err := client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the newest block: %w", err)
	}
	if before.Hash() != after.Hash() {
		return nil, fmt.Errorf("the chain moved from block %s to block %s while it was read", before.Number, after.Number)
	}
	return h, nil
}

func (h *History) read(ctx context.Context, client *ethclient.Client, deployed *devchain.Contracts, head uint64) error {
	id, err := client.ChainID(ctx)
	if err != nil {
		return fmt.Errorf("read the chain id: %w", err)
	}
	h.chainID = id.Uint64()
	final, err := client.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
	if err != nil {
		return fmt.Errorf("read the newest final block: %w", err)
	}
	h.Final = final.Number.Uint64()
	for number := range head + 1 {
		block, err := client.HeaderByNumber(ctx, new(big.Int).SetUint64(number))
		if err != nil {
			return fmt.Errorf("read block %d: %w", number, err)
		}
		h.Times = append(h.Times, block.Time)
	}
	var addresses []common.Address
	for _, v := range deployed.Vaults {
		read, err := readVault(ctx, client, v.Address, v.StartBlock)
		if err != nil {
			return fmt.Errorf("read the vault %s: %w", v.Address, err)
		}
		h.vaults = append(h.vaults, read)
		addresses = append(addresses, v.Address)
	}
	logs, err := client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int), ToBlock: new(big.Int).SetUint64(head), Addresses: addresses,
	})
	if err != nil {
		return fmt.Errorf("read the vaults' logs: %w", err)
	}
	for i := range logs {
		logs[i].BlockTimestamp = 0 // the time is that of the header: ingest accepts that of the log
	}
	return h.append(logs)
}

func readVault(
	ctx context.Context, client *ethclient.Client, address common.Address, startBlock uint64,
) (vault, error) {
	v := vault{address: address, startBlock: startBlock}
	var err error
	read := func(from *devchain.Contract, method string, into any) {
		if err == nil {
			err = from.Call(&bind.CallOpts{Context: ctx}, &[]any{into}, method)
		}
	}
	contract := devchain.At(client, "ReferenceVault", address)
	read(contract, "asset", &v.asset.address)
	read(contract, "name", &v.name)
	read(contract, "symbol", &v.symbol)
	read(contract, "decimals", &v.decimals)
	asset := devchain.At(client, "MockAsset", v.asset.address)
	read(asset, "symbol", &v.asset.symbol)
	read(asset, "decimals", &v.asset.decimals)
	return v, err
}

// append decodes logs, which must be in chain order. It skips logs of the share token and of ERC-4626.
func (h *History) append(logs []types.Log) error {
	for _, l := range logs {
		event, err := decode(l)
		if slices.ContainsFunc(h.vaults, func(v vault) bool { return v.preset != "" && v.address == l.Address }) {
			event, err = decodeShares(l)
		}
		if err != nil {
			return fmt.Errorf("log %d of block %d: %w", l.Index, l.BlockNumber, err)
		}
		if event == nil {
			continue
		}
		if l.BlockNumber > h.Head() {
			return fmt.Errorf("log %d of block %d is beyond the newest block %d", l.Index, l.BlockNumber, h.Head())
		}
		h.Facts = append(h.Facts,
			Fact{l.Address, l.BlockNumber, cmp.Or(l.BlockTimestamp, h.Times[l.BlockNumber]), l.TxHash, l.Index, event})
	}
	return nil
}

// sampleIndex is the index of a sample, which has no log.
const sampleIndex = math.MaxUint32

// The presets for whose vaults the oracle has rules.
const (
	erc4626 = "erc4626"
	erc7540 = "erc7540"
)

// RedeemRequested is the topic of the requests of the preset erc7540.
var RedeemRequested = crypto.Keccak256Hash([]byte("RedeemRequest(address,address,uint256,address,uint256)"))

// decodeShares returns a log of a vault of the presets erc4626 and erc7540: a deposit, a request, a withdrawal, or a
// transfer of shares, which may mint or burn them. The number of a deposit or request is its place in the chain.
func decodeShares(l types.Log) (any, error) {
	place := new(big.Int).SetUint64(l.BlockNumber<<24 | uint64(l.Index))
	if l.Topics[0] == RedeemRequested {
		return contracts.WithdrawalRequested{RequestIndex: place, Owner: common.BytesToAddress(l.Topics[1][:]),
			Shares: new(big.Int).SetBytes(l.Data[32:]), AssetsEstimate: new(big.Int)}, nil
	}
	switch event, err := contracts.VaultABI().EventByID(l.Topics[0]); {
	case err != nil:
		return nil, err
	case event.Name == "Deposit":
		var d struct {
			Sender, Owner  common.Address
			Assets, Shares *big.Int
		}
		err := standard.UnpackLog(&d, event.Name, l)
		return contracts.DepositAccepted{DepositID: place, Owner: d.Owner, Sender: d.Sender, Assets: d.Assets,
			Shares: d.Shares}, err
	case event.Name == "Withdraw":
		var w withdraw
		err := standard.UnpackLog(&w, event.Name, l)
		return w, err
	case event.Name == "Transfer":
		var t transfer
		err := standard.UnpackLog(&t, event.Name, l)
		return t, err
	default:
		return nil, fmt.Errorf("the oracle has no rule for the event %s", event.Name)
	}
}

// withdraw and transfer are events of the standards ERC-4626 and ERC-20, which standard parses.
type (
	withdraw struct {
		Sender, Receiver, Owner common.Address
		Assets, Shares          *big.Int
	}
	transfer struct {
		From, To common.Address
		Value    *big.Int
	}
)

var standard = bind.NewBoundContract(common.Address{}, *contracts.VaultABI(), nil, nil, nil)

// decode returns a log as go-ethereum parses it, or nil for one that navlog does not count.
func decode(l types.Log) (any, error) {
	if len(l.Topics) == 0 {
		return nil, fmt.Errorf("no topic")
	}
	declared, err := contracts.VaultABI().EventByID(l.Topics[0])
	if err != nil {
		return nil, err
	}
	switch declared.Name {
	case "Approval", "Transfer", "Deposit", "Withdraw", "WithdrawalsSettled":
		return nil, nil
	}
	e, err := devchain.Decode(l.Topics, l.Data)
	if e == nil && err == nil {
		err = fmt.Errorf("the oracle does not know the event %s", declared.Name)
	}
	return e, err
}
