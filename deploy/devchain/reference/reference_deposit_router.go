// Code generated - DO NOT EDIT.
// This file is a generated binding and any manual changes will be lost.

package reference

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"time"

	ethereum "github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/event"
)

// Reference imports to suppress errors if they are not otherwise used.
var (
	_ = errors.New
	_ = big.NewInt
	_ = strings.NewReader
	_ = ethereum.NotFound
	_ = bind.Bind
	_ = common.Big1
	_ = types.BloomLookup
	_ = event.NewSubscription
	_ = abi.ConvertType
	_ = time.Tick
	_ = context.Background
)

// ReferenceDepositRouterMetaData contains all meta data concerning the ReferenceDepositRouter contract.
var ReferenceDepositRouterMetaData = &bind.MetaData{
	ABI: "[{\"inputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"caller\",\"type\":\"address\"}],\"name\":\"NotAuthorized\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"PartnerNotActive\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"TokenCallFailed\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"minShares\",\"type\":\"uint256\"}],\"name\":\"TooFewShares\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"}],\"name\":\"VaultNotAllowed\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"indexed\":false,\"internalType\":\"bool\",\"name\":\"active\",\"type\":\"bool\"}],\"name\":\"PartnerStatusSet\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"RoutedDeposit\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"RoutedWithdrawal\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"bool\",\"name\":\"allowed\",\"type\":\"bool\"}],\"name\":\"VaultAllowed\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"minShares\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"deposit\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint32\",\"name\":\"\",\"type\":\"uint32\"}],\"name\":\"isPartnerActive\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"isVaultAllowed\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"owner\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"requestWithdrawal\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"internalType\":\"bool\",\"name\":\"active\",\"type\":\"bool\"}],\"name\":\"setPartnerStatus\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"vault\",\"type\":\"address\"},{\"internalType\":\"bool\",\"name\":\"allowed\",\"type\":\"bool\"}],\"name\":\"setVaultAllowed\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	Bin: "0x60a08060405234602f573360805261075090816100348239608051818181608d0152818161013e01526103e60152f35b5f80fdfe6080806040526004361015610012575f80fd5b5f3560e01c908163280ccd87146105ff575080633fbce516146104b25780634df4b186146104785780637ee79577146103c257806382b78ba71461016d5780638da5cb5b146101295763ab05a1e314610069575f80fd5b3461012557604036600319011261012557610082610637565b61008a610660565b907f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031633036101125760207f4351eca17cfb635b191154118486453ff79799ff42f716691d63ba01a1139cb39160018060a01b031692835f525f82526101078160405f209060ff801983541691151516179055565b6040519015158152a2005b634a0bfec160e01b5f523360045260245ffd5b5f80fd5b34610125575f366003190112610125576040517f00000000000000000000000000000000000000000000000000000000000000006001600160a01b03168152602090f35b346101255760a036600319011261012557610186610637565b60243590604435906064356001600160a01b0381169190829003610125576084359063ffffffff82168092036101255760018060a01b031690815f525f60205260ff60405f205416156103af57805f52600160205260ff60405f2054161561039d576040516338d52e0f60e01b8152602081600481865afa801561034e575f90610359575b610283915060018060a01b03166102526040516323b872dd60e01b60208201523360248201523060448201528860648201526064815261024c60848261066f565b826106a5565b6040519063095ea7b360e01b60208301528460248301528760448301526044825261027e60648361066f565b6106a5565b6040519363744057e960e11b85528560048601528360248601528160448601526020856064815f875af194851561034e575f9561031a575b5080851061030457507f6e7deff6518aa63cf5f3c83f3a17a081bdd5210147644f508896908f5b7d50d960606020966040519033825288820152866040820152a4604051908152f35b84637167094f60e11b5f5260045260245260445ffd5b9094506020813d602011610346575b816103366020938361066f565b81010312610125575193866102bb565b3d9150610329565b6040513d5f823e3d90fd5b506020813d602011610395575b816103736020938361066f565b8101031261012557516001600160a01b0381168103610125576102839061020b565b3d9150610366565b634ad379a160e01b5f5260045260245ffd5b506318ef3f8360e01b5f5260045260245ffd5b34610125576040366003190112610125576103db61064d565b6103e3610660565b907f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031633036101125763ffffffff169081156104655760207f6719b1beec1cd3e5d77729ba39f0604d812268137e01c07c0ab6d8f18d88053b91835f52600182526101078160405f209060ff801983541691151516179055565b634ad379a160e01b5f525f60045260245ffd5b346101255760203660031901126101255763ffffffff61049661064d565b165f526001602052602060ff60405f2054166040519015158152f35b34610125576080366003190112610125576104cb610637565b6044356001600160a01b038116919060243590839003610125576064359163ffffffff8316809303610125576001600160a01b03165f8181526020819052604090205460ff16156105ed57825f52600160205260ff60405f205416156105da5760405193633ee80f9b60e11b855233600486015282602486015260448501528260648501526020846084815f855af192831561034e575f936105a5575b6020945060405192848452858401527f0319d63783b7c0c6ef9ca1bce8ef12c65b684877e8f6b2b67e04e5689357778a60403394a4604051908152f35b92506020843d6020116105d2575b816105c06020938361066f565b81010312610125576020935192610568565b3d91506105b3565b82634ad379a160e01b5f5260045260245ffd5b6318ef3f8360e01b5f5260045260245ffd5b34610125576020366003190112610125576020906001600160a01b03610623610637565b165f525f825260ff60405f20541615158152f35b600435906001600160a01b038216820361012557565b6004359063ffffffff8216820361012557565b60243590811515820361012557565b90601f8019910116810190811067ffffffffffffffff82111761069157604052565b634e487b7160e01b5f52604160045260245ffd5b81516001600160a01b03909116915f91829160200182855af13d15610748573d9067ffffffffffffffff821161069157604051916106ed601f8201601f19166020018461066f565b82523d5f602084013e5b1561074057805180610722575050803b155b6107105750565b633fb2da6d60e21b5f5260045260245ffd5b81602091810103126101255760200151801590811514610709575f80fd5b602081519101fd5b6060906106f756",
}

// ReferenceDepositRouterABI is the input ABI used to generate the binding from.
// Deprecated: Use ReferenceDepositRouterMetaData.ABI instead.
var ReferenceDepositRouterABI = ReferenceDepositRouterMetaData.ABI

// ReferenceDepositRouterBin is the compiled bytecode used for deploying new contracts.
// Deprecated: Use ReferenceDepositRouterMetaData.Bin instead.
var ReferenceDepositRouterBin = ReferenceDepositRouterMetaData.Bin

// DeployReferenceDepositRouter deploys a new Ethereum contract, binding an instance of ReferenceDepositRouter to it.
func DeployReferenceDepositRouter(auth *bind.TransactOpts, backend bind.ContractBackend) (common.Address, *types.Transaction, *ReferenceDepositRouter, error) {
	parsed, err := ReferenceDepositRouterMetaData.GetAbi()
	if err != nil {
		return common.Address{}, nil, nil, err
	}
	if parsed == nil {
		return common.Address{}, nil, nil, errors.New("GetABI returned nil")
	}

	address, tx, contract, err := bind.DeployContract(auth, *parsed, common.FromHex(ReferenceDepositRouterBin), backend)
	if err != nil {
		return common.Address{}, nil, nil, err
	}
	return address, tx, &ReferenceDepositRouter{ReferenceDepositRouterCaller: ReferenceDepositRouterCaller{contract: contract}, ReferenceDepositRouterTransactor: ReferenceDepositRouterTransactor{contract: contract}, ReferenceDepositRouterFilterer: ReferenceDepositRouterFilterer{contract: contract}}, nil
}

// ReferenceDepositRouter is an auto generated Go binding around an Ethereum contract.
type ReferenceDepositRouter struct {
	ReferenceDepositRouterCaller     // Read-only binding to the contract
	ReferenceDepositRouterTransactor // Write-only binding to the contract
	ReferenceDepositRouterFilterer   // Log filterer for contract events
}

// ReferenceDepositRouterCaller is an auto generated read-only Go binding around an Ethereum contract.
type ReferenceDepositRouterCaller struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceDepositRouterTransactor is an auto generated write-only Go binding around an Ethereum contract.
type ReferenceDepositRouterTransactor struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceDepositRouterFilterer is an auto generated log filtering Go binding around an Ethereum contract events.
type ReferenceDepositRouterFilterer struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceDepositRouterSession is an auto generated Go binding around an Ethereum contract,
// with pre-set call and transact options.
type ReferenceDepositRouterSession struct {
	Contract     *ReferenceDepositRouter // Generic contract binding to set the session for
	CallOpts     bind.CallOpts           // Call options to use throughout this session
	TransactOpts bind.TransactOpts       // Transaction auth options to use throughout this session
}

// ReferenceDepositRouterCallerSession is an auto generated read-only Go binding around an Ethereum contract,
// with pre-set call options.
type ReferenceDepositRouterCallerSession struct {
	Contract *ReferenceDepositRouterCaller // Generic contract caller binding to set the session for
	CallOpts bind.CallOpts                 // Call options to use throughout this session
}

// ReferenceDepositRouterTransactorSession is an auto generated write-only Go binding around an Ethereum contract,
// with pre-set transact options.
type ReferenceDepositRouterTransactorSession struct {
	Contract     *ReferenceDepositRouterTransactor // Generic contract transactor binding to set the session for
	TransactOpts bind.TransactOpts                 // Transaction auth options to use throughout this session
}

// ReferenceDepositRouterRaw is an auto generated low-level Go binding around an Ethereum contract.
type ReferenceDepositRouterRaw struct {
	Contract *ReferenceDepositRouter // Generic contract binding to access the raw methods on
}

// ReferenceDepositRouterCallerRaw is an auto generated low-level read-only Go binding around an Ethereum contract.
type ReferenceDepositRouterCallerRaw struct {
	Contract *ReferenceDepositRouterCaller // Generic read-only contract binding to access the raw methods on
}

// ReferenceDepositRouterTransactorRaw is an auto generated low-level write-only Go binding around an Ethereum contract.
type ReferenceDepositRouterTransactorRaw struct {
	Contract *ReferenceDepositRouterTransactor // Generic write-only contract binding to access the raw methods on
}

// NewReferenceDepositRouter creates a new instance of ReferenceDepositRouter, bound to a specific deployed contract.
func NewReferenceDepositRouter(address common.Address, backend bind.ContractBackend) (*ReferenceDepositRouter, error) {
	contract, err := bindReferenceDepositRouter(address, backend, backend, backend)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouter{ReferenceDepositRouterCaller: ReferenceDepositRouterCaller{contract: contract}, ReferenceDepositRouterTransactor: ReferenceDepositRouterTransactor{contract: contract}, ReferenceDepositRouterFilterer: ReferenceDepositRouterFilterer{contract: contract}}, nil
}

// NewReferenceDepositRouterCaller creates a new read-only instance of ReferenceDepositRouter, bound to a specific deployed contract.
func NewReferenceDepositRouterCaller(address common.Address, caller bind.ContractCaller) (*ReferenceDepositRouterCaller, error) {
	contract, err := bindReferenceDepositRouter(address, caller, nil, nil)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterCaller{contract: contract}, nil
}

// NewReferenceDepositRouterTransactor creates a new write-only instance of ReferenceDepositRouter, bound to a specific deployed contract.
func NewReferenceDepositRouterTransactor(address common.Address, transactor bind.ContractTransactor) (*ReferenceDepositRouterTransactor, error) {
	contract, err := bindReferenceDepositRouter(address, nil, transactor, nil)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterTransactor{contract: contract}, nil
}

// NewReferenceDepositRouterFilterer creates a new log filterer instance of ReferenceDepositRouter, bound to a specific deployed contract.
func NewReferenceDepositRouterFilterer(address common.Address, filterer bind.ContractFilterer) (*ReferenceDepositRouterFilterer, error) {
	contract, err := bindReferenceDepositRouter(address, nil, nil, filterer)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterFilterer{contract: contract}, nil
}

// bindReferenceDepositRouter binds a generic wrapper to an already deployed contract.
func bindReferenceDepositRouter(address common.Address, caller bind.ContractCaller, transactor bind.ContractTransactor, filterer bind.ContractFilterer) (*bind.BoundContract, error) {
	parsed, err := ReferenceDepositRouterMetaData.GetAbi()
	if err != nil {
		return nil, err
	}
	return bind.NewBoundContract(address, *parsed, caller, transactor, filterer), nil
}

// Call invokes the (constant) contract method with params as input values and
// sets the output to result. The result type might be a single field for simple
// returns, a slice of interfaces for anonymous returns and a struct for named
// returns.
func (_ReferenceDepositRouter *ReferenceDepositRouterRaw) Call(opts *bind.CallOpts, result *[]interface{}, method string, params ...interface{}) error {
	return _ReferenceDepositRouter.Contract.ReferenceDepositRouterCaller.contract.Call(opts, result, method, params...)
}

// Transfer initiates a plain transaction to move funds to the contract, calling
// its default method if one is available.
func (_ReferenceDepositRouter *ReferenceDepositRouterRaw) Transfer(opts *bind.TransactOpts) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.ReferenceDepositRouterTransactor.contract.Transfer(opts)
}

// Transact invokes the (paid) contract method with params as input values.
func (_ReferenceDepositRouter *ReferenceDepositRouterRaw) Transact(opts *bind.TransactOpts, method string, params ...interface{}) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.ReferenceDepositRouterTransactor.contract.Transact(opts, method, params...)
}

// Call invokes the (constant) contract method with params as input values and
// sets the output to result. The result type might be a single field for simple
// returns, a slice of interfaces for anonymous returns and a struct for named
// returns.
func (_ReferenceDepositRouter *ReferenceDepositRouterCallerRaw) Call(opts *bind.CallOpts, result *[]interface{}, method string, params ...interface{}) error {
	return _ReferenceDepositRouter.Contract.contract.Call(opts, result, method, params...)
}

// Transfer initiates a plain transaction to move funds to the contract, calling
// its default method if one is available.
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorRaw) Transfer(opts *bind.TransactOpts) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.contract.Transfer(opts)
}

// Transact invokes the (paid) contract method with params as input values.
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorRaw) Transact(opts *bind.TransactOpts, method string, params ...interface{}) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.contract.Transact(opts, method, params...)
}

// IsPartnerActive is a free data retrieval call binding the contract method 0x4df4b186.
//
// Solidity: function isPartnerActive(uint32 ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterCaller) IsPartnerActive(opts *bind.CallOpts, arg0 uint32) (bool, error) {
	var out []interface{}
	err := _ReferenceDepositRouter.contract.Call(opts, &out, "isPartnerActive", arg0)

	if err != nil {
		return *new(bool), err
	}

	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)

	return out0, err

}

// IsPartnerActive is a free data retrieval call binding the contract method 0x4df4b186.
//
// Solidity: function isPartnerActive(uint32 ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) IsPartnerActive(arg0 uint32) (bool, error) {
	return _ReferenceDepositRouter.Contract.IsPartnerActive(&_ReferenceDepositRouter.CallOpts, arg0)
}

// IsPartnerActive is a free data retrieval call binding the contract method 0x4df4b186.
//
// Solidity: function isPartnerActive(uint32 ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterCallerSession) IsPartnerActive(arg0 uint32) (bool, error) {
	return _ReferenceDepositRouter.Contract.IsPartnerActive(&_ReferenceDepositRouter.CallOpts, arg0)
}

// IsVaultAllowed is a free data retrieval call binding the contract method 0x280ccd87.
//
// Solidity: function isVaultAllowed(address ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterCaller) IsVaultAllowed(opts *bind.CallOpts, arg0 common.Address) (bool, error) {
	var out []interface{}
	err := _ReferenceDepositRouter.contract.Call(opts, &out, "isVaultAllowed", arg0)

	if err != nil {
		return *new(bool), err
	}

	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)

	return out0, err

}

// IsVaultAllowed is a free data retrieval call binding the contract method 0x280ccd87.
//
// Solidity: function isVaultAllowed(address ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) IsVaultAllowed(arg0 common.Address) (bool, error) {
	return _ReferenceDepositRouter.Contract.IsVaultAllowed(&_ReferenceDepositRouter.CallOpts, arg0)
}

// IsVaultAllowed is a free data retrieval call binding the contract method 0x280ccd87.
//
// Solidity: function isVaultAllowed(address ) view returns(bool)
func (_ReferenceDepositRouter *ReferenceDepositRouterCallerSession) IsVaultAllowed(arg0 common.Address) (bool, error) {
	return _ReferenceDepositRouter.Contract.IsVaultAllowed(&_ReferenceDepositRouter.CallOpts, arg0)
}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceDepositRouter *ReferenceDepositRouterCaller) Owner(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceDepositRouter.contract.Call(opts, &out, "owner")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) Owner() (common.Address, error) {
	return _ReferenceDepositRouter.Contract.Owner(&_ReferenceDepositRouter.CallOpts)
}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceDepositRouter *ReferenceDepositRouterCallerSession) Owner() (common.Address, error) {
	return _ReferenceDepositRouter.Contract.Owner(&_ReferenceDepositRouter.CallOpts)
}

// Deposit is a paid mutator transaction binding the contract method 0x82b78ba7.
//
// Solidity: function deposit(address vault, uint256 assets, uint256 minShares, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactor) Deposit(opts *bind.TransactOpts, vault common.Address, assets *big.Int, minShares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.contract.Transact(opts, "deposit", vault, assets, minShares, receiver, partnerId)
}

// Deposit is a paid mutator transaction binding the contract method 0x82b78ba7.
//
// Solidity: function deposit(address vault, uint256 assets, uint256 minShares, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) Deposit(vault common.Address, assets *big.Int, minShares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.Deposit(&_ReferenceDepositRouter.TransactOpts, vault, assets, minShares, receiver, partnerId)
}

// Deposit is a paid mutator transaction binding the contract method 0x82b78ba7.
//
// Solidity: function deposit(address vault, uint256 assets, uint256 minShares, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorSession) Deposit(vault common.Address, assets *big.Int, minShares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.Deposit(&_ReferenceDepositRouter.TransactOpts, vault, assets, minShares, receiver, partnerId)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x3fbce516.
//
// Solidity: function requestWithdrawal(address vault, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactor) RequestWithdrawal(opts *bind.TransactOpts, vault common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.contract.Transact(opts, "requestWithdrawal", vault, shares, receiver, partnerId)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x3fbce516.
//
// Solidity: function requestWithdrawal(address vault, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) RequestWithdrawal(vault common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.RequestWithdrawal(&_ReferenceDepositRouter.TransactOpts, vault, shares, receiver, partnerId)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x3fbce516.
//
// Solidity: function requestWithdrawal(address vault, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorSession) RequestWithdrawal(vault common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.RequestWithdrawal(&_ReferenceDepositRouter.TransactOpts, vault, shares, receiver, partnerId)
}

// SetPartnerStatus is a paid mutator transaction binding the contract method 0x7ee79577.
//
// Solidity: function setPartnerStatus(uint32 partnerId, bool active) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactor) SetPartnerStatus(opts *bind.TransactOpts, partnerId uint32, active bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.contract.Transact(opts, "setPartnerStatus", partnerId, active)
}

// SetPartnerStatus is a paid mutator transaction binding the contract method 0x7ee79577.
//
// Solidity: function setPartnerStatus(uint32 partnerId, bool active) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) SetPartnerStatus(partnerId uint32, active bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.SetPartnerStatus(&_ReferenceDepositRouter.TransactOpts, partnerId, active)
}

// SetPartnerStatus is a paid mutator transaction binding the contract method 0x7ee79577.
//
// Solidity: function setPartnerStatus(uint32 partnerId, bool active) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorSession) SetPartnerStatus(partnerId uint32, active bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.SetPartnerStatus(&_ReferenceDepositRouter.TransactOpts, partnerId, active)
}

// SetVaultAllowed is a paid mutator transaction binding the contract method 0xab05a1e3.
//
// Solidity: function setVaultAllowed(address vault, bool allowed) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactor) SetVaultAllowed(opts *bind.TransactOpts, vault common.Address, allowed bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.contract.Transact(opts, "setVaultAllowed", vault, allowed)
}

// SetVaultAllowed is a paid mutator transaction binding the contract method 0xab05a1e3.
//
// Solidity: function setVaultAllowed(address vault, bool allowed) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterSession) SetVaultAllowed(vault common.Address, allowed bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.SetVaultAllowed(&_ReferenceDepositRouter.TransactOpts, vault, allowed)
}

// SetVaultAllowed is a paid mutator transaction binding the contract method 0xab05a1e3.
//
// Solidity: function setVaultAllowed(address vault, bool allowed) returns()
func (_ReferenceDepositRouter *ReferenceDepositRouterTransactorSession) SetVaultAllowed(vault common.Address, allowed bool) (*types.Transaction, error) {
	return _ReferenceDepositRouter.Contract.SetVaultAllowed(&_ReferenceDepositRouter.TransactOpts, vault, allowed)
}

// ReferenceDepositRouterPartnerStatusSetIterator is returned from FilterPartnerStatusSet and is used to iterate over the raw logs and unpacked data for PartnerStatusSet events raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterPartnerStatusSetIterator struct {
	Event *ReferenceDepositRouterPartnerStatusSet // Event containing the contract specifics and raw log

	contract *bind.BoundContract // Generic contract to use for unpacking event data
	event    string              // Event name to use for unpacking event data

	logs chan types.Log        // Log channel receiving the found contract events
	sub  ethereum.Subscription // Subscription for errors, completion and termination
	done bool                  // Whether the subscription completed delivering logs
	fail error                 // Occurred error to stop iteration
}

// Next advances the iterator to the subsequent event, returning whether there
// are any more events found. In case of a retrieval or parsing error, false is
// returned and Error() can be queried for the exact failure.
func (it *ReferenceDepositRouterPartnerStatusSetIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceDepositRouterPartnerStatusSet)
			if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
				it.fail = err
				return false
			}
			it.Event.Raw = log
			return true

		default:
			return false
		}
	}
	// Iterator still in progress, wait for either a data or an error event
	select {
	case log := <-it.logs:
		it.Event = new(ReferenceDepositRouterPartnerStatusSet)
		if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
			it.fail = err
			return false
		}
		it.Event.Raw = log
		return true

	case err := <-it.sub.Err():
		it.done = true
		it.fail = err
		return it.Next()
	}
}

// Error returns any retrieval or parsing error occurred during filtering.
func (it *ReferenceDepositRouterPartnerStatusSetIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceDepositRouterPartnerStatusSetIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceDepositRouterPartnerStatusSet represents a PartnerStatusSet event raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterPartnerStatusSet struct {
	PartnerId uint32
	Active    bool
	Raw       types.Log // Blockchain specific contextual infos
}

// FilterPartnerStatusSet is a free log retrieval operation binding the contract event 0x6719b1beec1cd3e5d77729ba39f0604d812268137e01c07c0ab6d8f18d88053b.
//
// Solidity: event PartnerStatusSet(uint32 indexed partnerId, bool active)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) FilterPartnerStatusSet(opts *bind.FilterOpts, partnerId []uint32) (*ReferenceDepositRouterPartnerStatusSetIterator, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.FilterLogs(opts, "PartnerStatusSet", partnerIdRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterPartnerStatusSetIterator{contract: _ReferenceDepositRouter.contract, event: "PartnerStatusSet", logs: logs, sub: sub}, nil
}

// WatchPartnerStatusSet is a free log subscription operation binding the contract event 0x6719b1beec1cd3e5d77729ba39f0604d812268137e01c07c0ab6d8f18d88053b.
//
// Solidity: event PartnerStatusSet(uint32 indexed partnerId, bool active)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) WatchPartnerStatusSet(opts *bind.WatchOpts, sink chan<- *ReferenceDepositRouterPartnerStatusSet, partnerId []uint32) (event.Subscription, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.WatchLogs(opts, "PartnerStatusSet", partnerIdRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceDepositRouterPartnerStatusSet)
				if err := _ReferenceDepositRouter.contract.UnpackLog(event, "PartnerStatusSet", log); err != nil {
					// If the signature doesn't match, skip this log.
					if errors.Is(err, bind.ErrEventSignatureMismatch) {
						continue
					}
					return err
				}
				event.Raw = log

				select {
				case sink <- event:
				case err := <-sub.Err():
					return err
				case <-quit:
					return nil
				}
			case err := <-sub.Err():
				return err
			case <-quit:
				return nil
			}
		}
	}), nil
}

// ParsePartnerStatusSet is a log parse operation binding the contract event 0x6719b1beec1cd3e5d77729ba39f0604d812268137e01c07c0ab6d8f18d88053b.
//
// Solidity: event PartnerStatusSet(uint32 indexed partnerId, bool active)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) ParsePartnerStatusSet(log types.Log) (*ReferenceDepositRouterPartnerStatusSet, error) {
	event := new(ReferenceDepositRouterPartnerStatusSet)
	if err := _ReferenceDepositRouter.contract.UnpackLog(event, "PartnerStatusSet", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceDepositRouterRoutedDepositIterator is returned from FilterRoutedDeposit and is used to iterate over the raw logs and unpacked data for RoutedDeposit events raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterRoutedDepositIterator struct {
	Event *ReferenceDepositRouterRoutedDeposit // Event containing the contract specifics and raw log

	contract *bind.BoundContract // Generic contract to use for unpacking event data
	event    string              // Event name to use for unpacking event data

	logs chan types.Log        // Log channel receiving the found contract events
	sub  ethereum.Subscription // Subscription for errors, completion and termination
	done bool                  // Whether the subscription completed delivering logs
	fail error                 // Occurred error to stop iteration
}

// Next advances the iterator to the subsequent event, returning whether there
// are any more events found. In case of a retrieval or parsing error, false is
// returned and Error() can be queried for the exact failure.
func (it *ReferenceDepositRouterRoutedDepositIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceDepositRouterRoutedDeposit)
			if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
				it.fail = err
				return false
			}
			it.Event.Raw = log
			return true

		default:
			return false
		}
	}
	// Iterator still in progress, wait for either a data or an error event
	select {
	case log := <-it.logs:
		it.Event = new(ReferenceDepositRouterRoutedDeposit)
		if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
			it.fail = err
			return false
		}
		it.Event.Raw = log
		return true

	case err := <-it.sub.Err():
		it.done = true
		it.fail = err
		return it.Next()
	}
}

// Error returns any retrieval or parsing error occurred during filtering.
func (it *ReferenceDepositRouterRoutedDepositIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceDepositRouterRoutedDepositIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceDepositRouterRoutedDeposit represents a RoutedDeposit event raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterRoutedDeposit struct {
	PartnerId uint32
	Vault     common.Address
	Receiver  common.Address
	Sender    common.Address
	Assets    *big.Int
	Shares    *big.Int
	Raw       types.Log // Blockchain specific contextual infos
}

// FilterRoutedDeposit is a free log retrieval operation binding the contract event 0x6e7deff6518aa63cf5f3c83f3a17a081bdd5210147644f508896908f5b7d50d9.
//
// Solidity: event RoutedDeposit(uint32 indexed partnerId, address indexed vault, address indexed receiver, address sender, uint256 assets, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) FilterRoutedDeposit(opts *bind.FilterOpts, partnerId []uint32, vault []common.Address, receiver []common.Address) (*ReferenceDepositRouterRoutedDepositIterator, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}
	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.FilterLogs(opts, "RoutedDeposit", partnerIdRule, vaultRule, receiverRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterRoutedDepositIterator{contract: _ReferenceDepositRouter.contract, event: "RoutedDeposit", logs: logs, sub: sub}, nil
}

// WatchRoutedDeposit is a free log subscription operation binding the contract event 0x6e7deff6518aa63cf5f3c83f3a17a081bdd5210147644f508896908f5b7d50d9.
//
// Solidity: event RoutedDeposit(uint32 indexed partnerId, address indexed vault, address indexed receiver, address sender, uint256 assets, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) WatchRoutedDeposit(opts *bind.WatchOpts, sink chan<- *ReferenceDepositRouterRoutedDeposit, partnerId []uint32, vault []common.Address, receiver []common.Address) (event.Subscription, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}
	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.WatchLogs(opts, "RoutedDeposit", partnerIdRule, vaultRule, receiverRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceDepositRouterRoutedDeposit)
				if err := _ReferenceDepositRouter.contract.UnpackLog(event, "RoutedDeposit", log); err != nil {
					// If the signature doesn't match, skip this log.
					if errors.Is(err, bind.ErrEventSignatureMismatch) {
						continue
					}
					return err
				}
				event.Raw = log

				select {
				case sink <- event:
				case err := <-sub.Err():
					return err
				case <-quit:
					return nil
				}
			case err := <-sub.Err():
				return err
			case <-quit:
				return nil
			}
		}
	}), nil
}

// ParseRoutedDeposit is a log parse operation binding the contract event 0x6e7deff6518aa63cf5f3c83f3a17a081bdd5210147644f508896908f5b7d50d9.
//
// Solidity: event RoutedDeposit(uint32 indexed partnerId, address indexed vault, address indexed receiver, address sender, uint256 assets, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) ParseRoutedDeposit(log types.Log) (*ReferenceDepositRouterRoutedDeposit, error) {
	event := new(ReferenceDepositRouterRoutedDeposit)
	if err := _ReferenceDepositRouter.contract.UnpackLog(event, "RoutedDeposit", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceDepositRouterRoutedWithdrawalIterator is returned from FilterRoutedWithdrawal and is used to iterate over the raw logs and unpacked data for RoutedWithdrawal events raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterRoutedWithdrawalIterator struct {
	Event *ReferenceDepositRouterRoutedWithdrawal // Event containing the contract specifics and raw log

	contract *bind.BoundContract // Generic contract to use for unpacking event data
	event    string              // Event name to use for unpacking event data

	logs chan types.Log        // Log channel receiving the found contract events
	sub  ethereum.Subscription // Subscription for errors, completion and termination
	done bool                  // Whether the subscription completed delivering logs
	fail error                 // Occurred error to stop iteration
}

// Next advances the iterator to the subsequent event, returning whether there
// are any more events found. In case of a retrieval or parsing error, false is
// returned and Error() can be queried for the exact failure.
func (it *ReferenceDepositRouterRoutedWithdrawalIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceDepositRouterRoutedWithdrawal)
			if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
				it.fail = err
				return false
			}
			it.Event.Raw = log
			return true

		default:
			return false
		}
	}
	// Iterator still in progress, wait for either a data or an error event
	select {
	case log := <-it.logs:
		it.Event = new(ReferenceDepositRouterRoutedWithdrawal)
		if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
			it.fail = err
			return false
		}
		it.Event.Raw = log
		return true

	case err := <-it.sub.Err():
		it.done = true
		it.fail = err
		return it.Next()
	}
}

// Error returns any retrieval or parsing error occurred during filtering.
func (it *ReferenceDepositRouterRoutedWithdrawalIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceDepositRouterRoutedWithdrawalIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceDepositRouterRoutedWithdrawal represents a RoutedWithdrawal event raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterRoutedWithdrawal struct {
	PartnerId    uint32
	Vault        common.Address
	Owner        common.Address
	RequestIndex *big.Int
	Shares       *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterRoutedWithdrawal is a free log retrieval operation binding the contract event 0x0319d63783b7c0c6ef9ca1bce8ef12c65b684877e8f6b2b67e04e5689357778a.
//
// Solidity: event RoutedWithdrawal(uint32 indexed partnerId, address indexed vault, address indexed owner, uint256 requestIndex, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) FilterRoutedWithdrawal(opts *bind.FilterOpts, partnerId []uint32, vault []common.Address, owner []common.Address) (*ReferenceDepositRouterRoutedWithdrawalIterator, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}
	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.FilterLogs(opts, "RoutedWithdrawal", partnerIdRule, vaultRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterRoutedWithdrawalIterator{contract: _ReferenceDepositRouter.contract, event: "RoutedWithdrawal", logs: logs, sub: sub}, nil
}

// WatchRoutedWithdrawal is a free log subscription operation binding the contract event 0x0319d63783b7c0c6ef9ca1bce8ef12c65b684877e8f6b2b67e04e5689357778a.
//
// Solidity: event RoutedWithdrawal(uint32 indexed partnerId, address indexed vault, address indexed owner, uint256 requestIndex, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) WatchRoutedWithdrawal(opts *bind.WatchOpts, sink chan<- *ReferenceDepositRouterRoutedWithdrawal, partnerId []uint32, vault []common.Address, owner []common.Address) (event.Subscription, error) {

	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}
	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.WatchLogs(opts, "RoutedWithdrawal", partnerIdRule, vaultRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceDepositRouterRoutedWithdrawal)
				if err := _ReferenceDepositRouter.contract.UnpackLog(event, "RoutedWithdrawal", log); err != nil {
					// If the signature doesn't match, skip this log.
					if errors.Is(err, bind.ErrEventSignatureMismatch) {
						continue
					}
					return err
				}
				event.Raw = log

				select {
				case sink <- event:
				case err := <-sub.Err():
					return err
				case <-quit:
					return nil
				}
			case err := <-sub.Err():
				return err
			case <-quit:
				return nil
			}
		}
	}), nil
}

// ParseRoutedWithdrawal is a log parse operation binding the contract event 0x0319d63783b7c0c6ef9ca1bce8ef12c65b684877e8f6b2b67e04e5689357778a.
//
// Solidity: event RoutedWithdrawal(uint32 indexed partnerId, address indexed vault, address indexed owner, uint256 requestIndex, uint256 shares)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) ParseRoutedWithdrawal(log types.Log) (*ReferenceDepositRouterRoutedWithdrawal, error) {
	event := new(ReferenceDepositRouterRoutedWithdrawal)
	if err := _ReferenceDepositRouter.contract.UnpackLog(event, "RoutedWithdrawal", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceDepositRouterVaultAllowedIterator is returned from FilterVaultAllowed and is used to iterate over the raw logs and unpacked data for VaultAllowed events raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterVaultAllowedIterator struct {
	Event *ReferenceDepositRouterVaultAllowed // Event containing the contract specifics and raw log

	contract *bind.BoundContract // Generic contract to use for unpacking event data
	event    string              // Event name to use for unpacking event data

	logs chan types.Log        // Log channel receiving the found contract events
	sub  ethereum.Subscription // Subscription for errors, completion and termination
	done bool                  // Whether the subscription completed delivering logs
	fail error                 // Occurred error to stop iteration
}

// Next advances the iterator to the subsequent event, returning whether there
// are any more events found. In case of a retrieval or parsing error, false is
// returned and Error() can be queried for the exact failure.
func (it *ReferenceDepositRouterVaultAllowedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceDepositRouterVaultAllowed)
			if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
				it.fail = err
				return false
			}
			it.Event.Raw = log
			return true

		default:
			return false
		}
	}
	// Iterator still in progress, wait for either a data or an error event
	select {
	case log := <-it.logs:
		it.Event = new(ReferenceDepositRouterVaultAllowed)
		if err := it.contract.UnpackLog(it.Event, it.event, log); err != nil {
			it.fail = err
			return false
		}
		it.Event.Raw = log
		return true

	case err := <-it.sub.Err():
		it.done = true
		it.fail = err
		return it.Next()
	}
}

// Error returns any retrieval or parsing error occurred during filtering.
func (it *ReferenceDepositRouterVaultAllowedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceDepositRouterVaultAllowedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceDepositRouterVaultAllowed represents a VaultAllowed event raised by the ReferenceDepositRouter contract.
type ReferenceDepositRouterVaultAllowed struct {
	Vault   common.Address
	Allowed bool
	Raw     types.Log // Blockchain specific contextual infos
}

// FilterVaultAllowed is a free log retrieval operation binding the contract event 0x4351eca17cfb635b191154118486453ff79799ff42f716691d63ba01a1139cb3.
//
// Solidity: event VaultAllowed(address indexed vault, bool allowed)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) FilterVaultAllowed(opts *bind.FilterOpts, vault []common.Address) (*ReferenceDepositRouterVaultAllowedIterator, error) {

	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.FilterLogs(opts, "VaultAllowed", vaultRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceDepositRouterVaultAllowedIterator{contract: _ReferenceDepositRouter.contract, event: "VaultAllowed", logs: logs, sub: sub}, nil
}

// WatchVaultAllowed is a free log subscription operation binding the contract event 0x4351eca17cfb635b191154118486453ff79799ff42f716691d63ba01a1139cb3.
//
// Solidity: event VaultAllowed(address indexed vault, bool allowed)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) WatchVaultAllowed(opts *bind.WatchOpts, sink chan<- *ReferenceDepositRouterVaultAllowed, vault []common.Address) (event.Subscription, error) {

	var vaultRule []interface{}
	for _, vaultItem := range vault {
		vaultRule = append(vaultRule, vaultItem)
	}

	logs, sub, err := _ReferenceDepositRouter.contract.WatchLogs(opts, "VaultAllowed", vaultRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceDepositRouterVaultAllowed)
				if err := _ReferenceDepositRouter.contract.UnpackLog(event, "VaultAllowed", log); err != nil {
					// If the signature doesn't match, skip this log.
					if errors.Is(err, bind.ErrEventSignatureMismatch) {
						continue
					}
					return err
				}
				event.Raw = log

				select {
				case sink <- event:
				case err := <-sub.Err():
					return err
				case <-quit:
					return nil
				}
			case err := <-sub.Err():
				return err
			case <-quit:
				return nil
			}
		}
	}), nil
}

// ParseVaultAllowed is a log parse operation binding the contract event 0x4351eca17cfb635b191154118486453ff79799ff42f716691d63ba01a1139cb3.
//
// Solidity: event VaultAllowed(address indexed vault, bool allowed)
func (_ReferenceDepositRouter *ReferenceDepositRouterFilterer) ParseVaultAllowed(log types.Log) (*ReferenceDepositRouterVaultAllowed, error) {
	event := new(ReferenceDepositRouterVaultAllowed)
	if err := _ReferenceDepositRouter.contract.UnpackLog(event, "VaultAllowed", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}
