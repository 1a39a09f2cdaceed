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

// ReferenceVaultRequest is an auto generated low-level Go binding around an user-defined struct.
type ReferenceVaultRequest struct {
	Owner          common.Address
	ExpiresAt      uint64
	PartnerId      uint32
	Receiver       common.Address
	Status         uint8
	Shares         *big.Int
	AssetsEstimate *big.Int
	Assets         *big.Int
}

// ReferenceVaultMetaData contains all meta data concerning the ReferenceVault contract.
var ReferenceVaultMetaData = &bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"string\",\"name\":\"name_\",\"type\":\"string\"},{\"internalType\":\"string\",\"name\":\"symbol_\",\"type\":\"string\"},{\"internalType\":\"address\",\"name\":\"asset_\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"oracle_\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"manager_\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"custodian_\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"allowance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"wanted\",\"type\":\"uint256\"}],\"name\":\"InsufficientAllowance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"balance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"wanted\",\"type\":\"uint256\"}],\"name\":\"InsufficientBalance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"caller\",\"type\":\"address\"}],\"name\":\"NotAuthorized\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"}],\"name\":\"RequestExpired\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"}],\"name\":\"RequestNotExpired\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"SynchronousExitClosed\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"TokenCallFailed\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"name\":\"UnknownRequest\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"internalType\":\"enumReferenceVault.Status\",\"name\":\"status\",\"type\":\"uint8\"}],\"name\":\"WrongStatus\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"sweptTo\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"toDepositId\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"depositCount\",\"type\":\"uint256\"}],\"name\":\"WrongSweepRange\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"ZeroAddress\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"ZeroAmount\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"ZeroNav\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Approval\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"Deposit\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"depositId\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"indexed\":false,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"DepositAccepted\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"sweepId\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"custodian\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"fromDepositId\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"toDepositId\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"name\":\"DepositsSwept\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"navId\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"updater\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"navPerShare\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"totalAssets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"totalSupply\",\"type\":\"uint256\"}],\"name\":\"NavUpdated\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"Withdraw\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"WithdrawalCancelled\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"name\":\"WithdrawalClaimed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"WithdrawalExpired\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"settlementId\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"name\":\"WithdrawalFunded\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"indexed\":false,\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assetsEstimate\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"}],\"name\":\"WithdrawalRequested\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"uint256\",\"name\":\"settlementId\",\"type\":\"uint256\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"funder\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"requestCount\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"navPerShare\",\"type\":\"uint256\"}],\"name\":\"WithdrawalsSettled\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"allowance\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"approve\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"asset\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"balanceOf\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"name\":\"cancelWithdrawal\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"name\":\"claimWithdrawal\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"name\":\"convertToAssets\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"name\":\"convertToShares\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"custodian\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"decimals\",\"outputs\":[{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"}],\"name\":\"deposit\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"deposit\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"depositCount\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"name\":\"expireWithdrawal\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"manager\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"maxDeposit\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"maxMint\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"maxRedeem\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"maxWithdraw\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"name\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"navCount\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"navPerShare\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"oracle\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"owner\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"name\":\"previewDeposit\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"redeem\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"name\":\"request\",\"outputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"enumReferenceVault.Status\",\"name\":\"status\",\"type\":\"uint8\"},{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"assetsEstimate\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"internalType\":\"structReferenceVault.Request\",\"name\":\"\",\"type\":\"tuple\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"requestCount\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"requestTtl\",\"outputs\":[{\"internalType\":\"uint64\",\"name\":\"\",\"type\":\"uint64\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"}],\"name\":\"requestWithdrawal\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"requestWithdrawal\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"}],\"name\":\"requestWithdrawalFor\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"requestIndex\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"first\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"count\",\"type\":\"uint256\"}],\"name\":\"requests\",\"outputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"uint32\",\"name\":\"partnerId\",\"type\":\"uint32\"},{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"},{\"internalType\":\"enumReferenceVault.Status\",\"name\":\"status\",\"type\":\"uint8\"},{\"internalType\":\"uint256\",\"name\":\"shares\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"assetsEstimate\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"internalType\":\"structReferenceVault.Request[]\",\"name\":\"page\",\"type\":\"tuple[]\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint64\",\"name\":\"seconds_\",\"type\":\"uint64\"}],\"name\":\"setRequestTtl\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"oracle_\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"manager_\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"custodian_\",\"type\":\"address\"}],\"name\":\"setRoles\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256[]\",\"name\":\"requestIndexes\",\"type\":\"uint256[]\"}],\"name\":\"settleWithdrawals\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"settlementCount\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"sweepCount\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"toDepositId\",\"type\":\"uint256\"}],\"name\":\"sweepDeposits\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"assets\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"sweptTo\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"symbol\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalAssets\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalClaimed\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalDeposited\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalSupply\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"transfer\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"transferFrom\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"totalAssets_\",\"type\":\"uint256\"}],\"name\":\"updateNav\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"withdraw\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"}]",
	Bin: "0x60e080604052346104b75761262a803803809161001c82856104ce565b833981019060c0818303126104b75780516001600160401b0381116104b757826100479183016104f1565b602082015190926001600160401b0382116104b7576100679183016104f1565b9161007460408301610546565b61008060608401610546565b9161009960a061009260808701610546565b9501610546565b60405163313ce56760e01b8152909590916020836004816001600160a01b0388165afa9283156104c3575f93610481575b508051906001600160401b038211610380575f5490600182811c92168015610477575b60208310146103625781601f849311610402575b50602090601f831160011461039f575f92610394575b50508160011b915f199060031b1c1916175f555b8051906001600160401b0382116103805760015490600182811c92168015610376575b60208310146103625781601f8493116102ec575b50602090601f8311600114610286575f9261027b575b50508160011b915f199060031b1c1916176001555b60805260a0523360c0526001600160a01b03168015801561026a575b8015610259575b61024a57600580546001600160a01b03199081169290921790556006805482166001600160a01b0393841617905560078054909116929091169190911790556040516120cf908161055b8239608051816113c9015260a0518181816103030152818161046101528181610ad901528181610cd901528181610f9e0152611359015260c0518181816106c0015281816109a5015261115b0152f35b63d92e233d60e01b5f5260045ffd5b506001600160a01b038316156101b0565b506001600160a01b038216156101a9565b015190505f80610178565b60015f9081528281209350601f198516905b8181106102d457509084600195949392106102bc575b505050811b0160015561018d565b01515f1960f88460031b161c191690555f80806102ae565b92936020600181928786015181550195019301610298565b828111156101625760015f52909150601f830160051c7fb10e2d527612073b26eecdfd717e6a320cf44b4afac2b0732d9fcbe2b7fa0cf66020851061035a575b849392601f0160051c82900391015f5b82811061034a575050610162565b5f8183015585945060010161033c565b5f915061032c565b634e487b7160e01b5f52602260045260245ffd5b91607f169161014e565b634e487b7160e01b5f52604160045260245ffd5b015190505f80610117565b5f8080528281209350601f198516905b8181106103ea57509084600195949392106103d2575b505050811b015f5561012b565b01515f1960f88460031b161c191690555f80806103c5565b929360206001819287860151815501950193016103af565b82811115610101575f8052909150601f830160051c7f290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e5636020851061046f575b849392601f0160051c82900391015f5b82811061045f575050610101565b5f81830155859450600101610451565b5f9150610441565b91607f16916100ed565b9092506020813d6020116104bb575b8161049d602093836104ce565b810103126104b7575160ff811681036104b757915f6100ca565b5f80fd5b3d9150610490565b6040513d5f823e3d90fd5b601f909101601f19168101906001600160401b0382119082101761038057604052565b81601f820112156104b7578051906001600160401b0382116103805760405192610525601f8401601f1916602001856104ce565b828452602083830101116104b757815f9260208093018386015e8301015290565b51906001600160a01b03821682036104b75756fe6080806040526004361015610012575f80fd5b5f3560e01c90816301e1d114146117c857508063037eca76146117ab57806306fdde03146116f357806307a2d13a146116d5578063095ea7b31461165c57806318160ddd1461163f57806320f1240f14611622578063217397791461144257806323b872dd1461140a5780632dfdf0b5146113ed578063313ce567146113b0578063375b74c31461138857806338d52e0f146113445780633aa9c1311461131b5780633efcfda414611262578063402d267d1461123d578063481c6a751461121557806354841e941461112f5780635badbe4c146111125780635f18b4bd14610eb95780636a7360d814610e355780636b28237314610e185780636e553f6514610ca557806370a0823114610c6d5780637336e88c14610bae578063750102a814610b915780637bf7990a14610a635780637dc0d1d014610a3b5780637dd01f36146109ee57806382e46584146109d45780638da5cb5b146109905780639089add81461086f57806395d89b411461076b578063a9059cbb1461073a578063ae09722314610720578063b460af941461071b578063ba0876521461071b578063c63d75b61461062d578063c6e6f59214610415578063c95246471461069a578063ce96cb771461062d578063d54ad2a11461067d578063d845a4b314610632578063d905777e1461062d578063dd62ed3e146105dd578063e880afd21461043b578063ef8b30f714610415578063f8444436146102645763ff50abdc14610237575f80fd5b34610260575f36600319011261026057600a545f52600f602052602060405f2054604051908152f35b5f80fd5b34610260576020366003190112610260576004356010548110156104035761028b81611ac6565b506001810160ff815460a01c1660058110156103ef57600181036103d2575081546001600160a01b0316331415806103be575b6103ab576002602093600484015493600160a11b60ff60a01b198554161784556102ea85600954611a59565b60095583546103289086906001600160a01b03908116907f000000000000000000000000000000000000000000000000000000000000000016611f76565b60018060a01b03815416809460018060a01b039054169384920154927f8c6f1f453248546230edca559f3fcddbea2f6c7c33a0f7899c403d78dfb642f260408051868152898b820152a460405190848252858201527ffbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db60403392a4604051908152f35b634a0bfec160e01b5f523360045260245ffd5b5080546001600160a01b03163314156102be565b63a5d15e1f60e01b5f5260048490526103ea906118c2565b60445ffd5b634e487b7160e01b5f52602160045260245ffd5b631f79bbe760e01b5f5260045260245ffd5b34610260576020366003190112610260576020610433600435611bb7565b604051908152f35b34610260576104493661188b565b9161045381611bb7565b9182156105ce5761048e82337f00000000000000000000000000000000000000000000000000000000000000006001600160a01b0316611f2e565b610499600a54611a27565b9081600a555f1982018281116105ba575f52600f6020526104be8360405f2054611a59565b825f52600f60205260405f20556104d783600854611a59565b6008556001600160a01b03169081156105ab577fbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa805763ffffffff60209661051f87600254611a59565b600255845f526003885260405f20610538888254611a59565b9055845f5f5160206120af5f395f51905f528a6040518b8152a384604051878152888a8201527fdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d760403392a36040805133815260208101979097528601879052169380606081015b0390a4604051908152f35b63d92e233d60e01b5f5260045ffd5b634e487b7160e01b5f52601160045260245ffd5b631f2a200560e01b5f5260045ffd5b34610260576040366003190112610260576105f6611849565b6105fe61185f565b6001600160a01b039182165f908152600460209081526040808320949093168252928352819020549051908152f35b61198a565b346102605760203660031901126102605760043561064e611a8a565b506010548110156104035761066e61066861010092611ac6565b50611af6565b61067b60405180926118d0565bf35b34610260575f366003190112610260576020600954604051908152f35b34610260576020366003190112610260576004356001600160401b0381168103610260577f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031633036103ab576007805467ffffffffffffffff60a01b191660a09290921b67ffffffffffffffff60a01b16919091179055005b611942565b34610260575f366003190112610260576020610433611b74565b3461026057604036600319011261026057610760610756611849565b6024359033611e55565b602060405160018152f35b34610260575f366003190112610260576040515f6001548060011c90600181168015610865575b6020831081146108515782855290811561082d57506001146107cf575b6107cb836107bf818503826117fe565b6040519182918261181f565b0390f35b60015f9081527fb10e2d527612073b26eecdfd717e6a320cf44b4afac2b0732d9fcbe2b7fa0cf6939250905b808210610813575090915081016020016107bf6107af565b9192600181602092548385880101520191019092916107fb565b60ff191660208086019190915291151560051b840190910191506107bf90506107af565b634e487b7160e01b5f52602260045260245ffd5b91607f1691610792565b3461026057604036600319011261026057600435602435601054828181105f146109885761089c91611a66565b808210156109805750905b6108b082611a73565b916108be60405193846117fe565b8083526108cd601f1991611a73565b015f5b8181106109695750505f5b825181101561091857806108fc6106686108f760019486611a59565b611ac6565b6109068286611ae2565b526109118185611ae2565b50016108db565b826040518091602082016020835281518091526020604084019201905f5b818110610944575050500390f35b9193509160206101008261095b60019488516118d0565b019401910191849392610936565b602090610974611a8a565b828287010152016108d0565b9050906108a7565b50505f61089c565b34610260575f366003190112610260576040517f00000000000000000000000000000000000000000000000000000000000000006001600160a01b03168152602090f35b346102605760206104336109e73661188b565b9133611bec565b3461026057608036600319011261026057610a07611849565b60243590610a13611875565b6064359063ffffffff82168203610260578361043393610a366020963383611dbd565b611bec565b34610260575f366003190112610260576005546040516001600160a01b039091168152602090f35b3461026057602036600319011261026057600654600435906001600160a01b031633036103ab57600b54808211801590610b86575b610b69575f828152600f602052604080822054838352912054610aba91611a66565b600b839055600754909190610afe9083906001600160a01b03908116907f000000000000000000000000000000000000000000000000000000000000000016611f76565b610b09600d54611a27565b600d8190556007546001600160a01b031691600181019081106105ba576040805191825260208083019690965281018490527febb24afaa1938255368713eafd60bea748aebde2bca568a812715a201fa47d6790606090a3604051908152f35b90600a5491630290664f60e01b5f5260045260245260445260645ffd5b50600a548211610a98565b34610260575f366003190112610260576020600d54604051908152f35b3461026057602036600319011261026057600435610bcb81611eae565b90610bd582611f0c565b15610c495760018201805460ff60a01b1916600160a21b179055815460028301805490937f5fb0e1ba0a27df5b9c0aa4e2cf04d157f0a731b6a17aa890ee8735c842bdedd492602092610c31916001600160a01b031630611e55565b5493546040519081526001600160a01b0390941693a3005b6001600160401b03825460a01c1690631fad323360e21b5f5260045260245260445ffd5b34610260576020366003190112610260576001600160a01b03610c8e611849565b165f526003602052602060405f2054604051908152f35b3461026057604036600319011261026057600435610cc161185f565b90610ccb81611bb7565b9081156105ce57610d0681337f00000000000000000000000000000000000000000000000000000000000000006001600160a01b0316611f2e565b610d11600a54611a27565b9283600a555f1984018481116105ba575f52600f602052610d368260405f2054611a59565b845f52600f60205260405f2055610d4f82600854611a59565b6008556001600160a01b031680156105ab576020937fbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa8057845f94610d9482600254611a59565b6002558486526003885260408620610dad838254611a59565b905584865f5160206120af5f395f51905f528a604051868152a384604051828152838a8201527fdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d760403392a360408051338152602081019290925281019190915280606081016105a0565b34610260575f366003190112610260576020600b54604051908152f35b3461026057602036600319011261026057600554600435906001600160a01b031633036103ab5780600855610e6b600c54611a27565b80600c557f19987253612dbb189dc7f1c655caecc013a35927823f41014343d0f875e1795e610e98611b74565b600254604080519283526020830195909552938101939093523392606090a3005b34610260576020366003190112610260576004356001600160401b03811161026057366023820112156102605780600401356001600160401b038111610260576024820191602436918360051b010111610260576006546001600160a01b031633036103ab575f9080156105ce57610f2f611b74565b610f3a600e54611a27565b9081600e5560025494600854905f965f5b86811061100e5750505094610f9485602097610f678430611fb1565b610f7384600254611a66565b6002555f6040518581525f5160206120af5f395f51905f528b3092a3611a66565b600855610fcb85337f00000000000000000000000000000000000000000000000000000000000000006001600160a01b0316611f2e565b6040519384528584015283604084015260608301527f6acaec6c4211e4110e727a52c5a35a29be43818f76977157cc5be460771a6bd660803393a3604051908152f35b61102561101f8289869b9796611a35565b35611eae565b9861102f8a611f0c565b6110e15760018a01805460ff60a01b1916600160a01b17905560028a01549899979889988892918c85876110638a856119ae565b9061106d916119c1565b998a958487600488015561108091611a59565b9a61108a91611a59565b9d61109492611a35565b91546040805192835260208301949094526001600160a01b0316929135917f1adee656cb612f423b882c3977d9686471c63b0737226e77fc11bef72113952791a460010197919297610f4b565b896001600160401b036110f5848b8d611a35565b35915460a01c169063a3242b7160e01b5f5260045260245260445ffd5b34610260575f366003190112610260576020601054604051908152f35b3461026057606036600319011261026057611148611849565b61115061185f565b611158611875565b917f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031633036103ab576001600160a01b031680158015611204575b80156111f3575b6105ab576001600160601b0360a01b600554161760055560018060a01b03166001600160601b0360a01b600654161760065560018060a01b03166001600160601b0360a01b60075416176007555f80f35b506001600160a01b038316156111a2565b506001600160a01b0382161561119b565b34610260575f366003190112610260576006546040516001600160a01b039091168152602090f35b3461026057602036600319011261026057611256611849565b5060206040515f198152f35b346102605760203660031901126102605760043561127f81611eae565b80549091906001600160a01b03811633036103ab5761129d83611f0c565b6112f9575060018201805460ff60a01b1916600360a01b179055815460028301805490937f1827a0ec328915df70a21d3ac58a86f06973898dbc2eaee0aa91be7563f136eb92602092610c31916001600160a01b031630611e55565b6001600160401b039163a3242b7160e01b5f5260045260a01c1660245260445ffd5b34610260575f3660031901126102605760206001600160401b0360075460a01c16604051908152f35b34610260575f366003190112610260576040517f00000000000000000000000000000000000000000000000000000000000000006001600160a01b03168152602090f35b34610260575f366003190112610260576007546040516001600160a01b039091168152602090f35b34610260575f36600319011261026057602060405160ff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b34610260575f366003190112610260576020600a54604051908152f35b3461026057606036600319011261026057610760611426611849565b61142e61185f565b6044359161143d833383611dbd565b611e55565b346102605760403660031901126102605760043561145e61185f565b81156105ce576001600160a01b03169081156105ab5761147d816119df565b60075460a01c6001600160401b03168061160357505f925b60105492604051926114a6846117e2565b3384526001600160401b036020850196169182875260408501945f8652606081019585875260808201985f8a5260a0830199848b5260c084019286845260e08501925f8452600160401b8c10156115ef5760018c016010556115078c611ac6565b9690966115dc57519051915160e01b6001600160e01b03191667ffffffffffffffff60a01b60a09390931b929092166001600160a01b0391821617919091178555985160018501805491909a166001600160a01b0319909116178955519160058310156103ef5760209a61157e6004945f9b611a03565b51600285015551600384015551910155611599813033611e55565b6040519384528684015260408301526060820152827f50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae1782609460803393a4604051908152f35b634e487b7160e01b5f525f60045260245ffd5b634e487b7160e01b5f52604160045260245ffd5b6001600160401b034216016001600160401b0381116105ba5792611495565b34610260575f366003190112610260576020600c54604051908152f35b34610260575f366003190112610260576020600254604051908152f35b3461026057604036600319011261026057611675611849565b335f8181526004602090815260408083206001600160a01b03909516808452948252918290206024359081905591519182527f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b92591a3602060405160018152f35b346102605760203660031901126102605760206104336004356119df565b34610260575f366003190112610260576040515f5f548060011c906001811680156117a1575b6020831081146108515782855290811561082d5750600114611745576107cb836107bf818503826117fe565b5f8080527f290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e563939250905b808210611787575090915081016020016107bf6107af565b91926001816020925483858801015201910190929161176f565b91607f1691611719565b34610260575f366003190112610260576020600e54604051908152f35b34610260575f366003190112610260576020906008548152f35b61010081019081106001600160401b038211176115ef57604052565b90601f801991011681019081106001600160401b038211176115ef57604052565b602060409281835280519182918282860152018484015e5f828201840152601f01601f1916010190565b600435906001600160a01b038216820361026057565b602435906001600160a01b038216820361026057565b604435906001600160a01b038216820361026057565b606090600319011261026057600435906024356001600160a01b0381168103610260579060443563ffffffff811681036102605790565b60058110156103ef57602452565b80516001600160a01b0390811683526020808301516001600160401b03169084015260408083015163ffffffff169084015260608083015190911690830152608081015160058110156103ef5760e0918291608085015260a081015160a085015260c081015160c08501520151910152565b34610260576060366003190112610260576024356001600160a01b038116810361026057506044356001600160a01b03811681036102605750633c2813bb60e01b5f5260045ffd5b34610260576020366003190112610260576119a3611849565b5060206040515f8152f35b818102929181159184041417156105ba57565b81156119cb570490565b634e487b7160e01b5f52601260045260245ffd5b600254806119eb575090565b6119fb611a0092600854906119ae565b6119c1565b90565b9060058110156103ef57815460ff60a01b191660a09190911b60ff60a01b16179055565b5f1981146105ba5760010190565b9190811015611a455760051b0190565b634e487b7160e01b5f52603260045260245ffd5b919082018092116105ba57565b919082039182116105ba57565b6001600160401b0381116115ef5760051b60200190565b60405190611a97826117e2565b5f60e0838281528260208201528260408201528260608201528260808201528260a08201528260c08201520152565b601054811015611a455760105f52600560205f20910201905f90565b8051821015611a455760209160051b010190565b90604051611b03816117e2565b8092805460018060a01b03811683526001600160401b038160a01c16602084015260e01c604083015260ff600182015460018060a01b038116606085015260a01c1660058110156103ef5760e0916004916080850152600281015460a0850152600381015460c08501520154910152565b60025480611b895750670de0b6b3a764000090565b60085490670de0b6b3a7640000820291808304670de0b6b3a764000014901517156105ba57611a00916119c1565b600254908115611be757600854908115611bd857611a00926119fb916119ae565b6320bc02b160e11b5f5260045ffd5b905090565b919093929380156105ce576001600160a01b038216156105ab57611c0f816119df565b60075460a01c6001600160401b031680611d9e57505f905b601054809760405192611c39846117e2565b60018060a01b038816845260208401946001600160401b0381168652604085019163ffffffff84168352606086019760018060a01b038a168952608087015f815260a0880194828652600160401b60c08a0198858a525f60e08c015210156115ef57611cab8f60018101601055611ac6565b9a909a6115dc5789519051915160e01b6001600160e01b03191667ffffffffffffffff60a01b60a09390931b929092166001600160a01b0391821617919091178a55995160018a01805491909b166001600160a01b0319909116178a55519760058910156103ef57600460e08f9b9963ffffffff996001600160401b0398611d567f50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae178260949e60809e611a03565b5160028601555160038501550151910155611d7281308d611e55565b6040519960018060a01b03168a5260208a01526040890152166060870152169460018060a01b031693a4565b6001600160401b034216016001600160401b0381116105ba5790611c27565b60018060a01b031691825f52600460205260405f2060018060a01b0383165f5260205260405f20545f198114611e4f57818110611e1f5790611dfe91611a66565b915f52600460205260405f209060018060a01b03165f5260205260405f2055565b608493926040519363246fb68960e21b8552600485015260018060a01b0316602484015260448301526064820152fd5b50505050565b6001600160a01b03909116919082156105ab57602081611e83845f5160206120af5f395f51905f5294611fb1565b845f526003825260405f20611e99858254611a59565b90556040519384526001600160a01b031692a3565b90601054821015611ef957611ec282611ac6565b509160ff600184015460a01c169060058210156103ef5781611ee2575050565b63a5d15e1f60e01b5f526004526103ea91506118c2565b50631f79bbe760e01b5f5260045260245ffd5b5460a01c6001600160401b03168015159081611f26575090565b905042101590565b6040516323b872dd60e01b60208201526001600160a01b039092166024830152306044830152606480830193909352918152611f7491611f6f6084836117fe565b612004565b565b60405163a9059cbb60e01b60208201526001600160a01b039092166024830152604480830193909352918152611f7491611f6f6064836117fe565b6001600160a01b03165f81815260036020526040902054909190818110611feb5790611fdc91611a66565b905f52600360205260405f2055565b8263db42144d60e01b5f5260045260245260445260645ffd5b81516001600160a01b03909116915f91829160200182855af13d156120a6573d906001600160401b0382116115ef576040519161204b601f8201601f1916602001846117fe565b82523d5f602084013e5b1561209e57805180612080575050803b155b61206e5750565b633fb2da6d60e21b5f5260045260245ffd5b81602091810103126102605760200151801590811514612067575f80fd5b602081519101fd5b60609061205556feddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
}

// ReferenceVaultABI is the input ABI used to generate the binding from.
// Deprecated: Use ReferenceVaultMetaData.ABI instead.
var ReferenceVaultABI = ReferenceVaultMetaData.ABI

// ReferenceVaultBin is the compiled bytecode used for deploying new contracts.
// Deprecated: Use ReferenceVaultMetaData.Bin instead.
var ReferenceVaultBin = ReferenceVaultMetaData.Bin

// DeployReferenceVault deploys a new Ethereum contract, binding an instance of ReferenceVault to it.
func DeployReferenceVault(auth *bind.TransactOpts, backend bind.ContractBackend, name_ string, symbol_ string, asset_ common.Address, oracle_ common.Address, manager_ common.Address, custodian_ common.Address) (common.Address, *types.Transaction, *ReferenceVault, error) {
	parsed, err := ReferenceVaultMetaData.GetAbi()
	if err != nil {
		return common.Address{}, nil, nil, err
	}
	if parsed == nil {
		return common.Address{}, nil, nil, errors.New("GetABI returned nil")
	}

	address, tx, contract, err := bind.DeployContract(auth, *parsed, common.FromHex(ReferenceVaultBin), backend, name_, symbol_, asset_, oracle_, manager_, custodian_)
	if err != nil {
		return common.Address{}, nil, nil, err
	}
	return address, tx, &ReferenceVault{ReferenceVaultCaller: ReferenceVaultCaller{contract: contract}, ReferenceVaultTransactor: ReferenceVaultTransactor{contract: contract}, ReferenceVaultFilterer: ReferenceVaultFilterer{contract: contract}}, nil
}

// ReferenceVault is an auto generated Go binding around an Ethereum contract.
type ReferenceVault struct {
	ReferenceVaultCaller     // Read-only binding to the contract
	ReferenceVaultTransactor // Write-only binding to the contract
	ReferenceVaultFilterer   // Log filterer for contract events
}

// ReferenceVaultCaller is an auto generated read-only Go binding around an Ethereum contract.
type ReferenceVaultCaller struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceVaultTransactor is an auto generated write-only Go binding around an Ethereum contract.
type ReferenceVaultTransactor struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceVaultFilterer is an auto generated log filtering Go binding around an Ethereum contract events.
type ReferenceVaultFilterer struct {
	contract *bind.BoundContract // Generic contract wrapper for the low level calls
}

// ReferenceVaultSession is an auto generated Go binding around an Ethereum contract,
// with pre-set call and transact options.
type ReferenceVaultSession struct {
	Contract     *ReferenceVault   // Generic contract binding to set the session for
	CallOpts     bind.CallOpts     // Call options to use throughout this session
	TransactOpts bind.TransactOpts // Transaction auth options to use throughout this session
}

// ReferenceVaultCallerSession is an auto generated read-only Go binding around an Ethereum contract,
// with pre-set call options.
type ReferenceVaultCallerSession struct {
	Contract *ReferenceVaultCaller // Generic contract caller binding to set the session for
	CallOpts bind.CallOpts         // Call options to use throughout this session
}

// ReferenceVaultTransactorSession is an auto generated write-only Go binding around an Ethereum contract,
// with pre-set transact options.
type ReferenceVaultTransactorSession struct {
	Contract     *ReferenceVaultTransactor // Generic contract transactor binding to set the session for
	TransactOpts bind.TransactOpts         // Transaction auth options to use throughout this session
}

// ReferenceVaultRaw is an auto generated low-level Go binding around an Ethereum contract.
type ReferenceVaultRaw struct {
	Contract *ReferenceVault // Generic contract binding to access the raw methods on
}

// ReferenceVaultCallerRaw is an auto generated low-level read-only Go binding around an Ethereum contract.
type ReferenceVaultCallerRaw struct {
	Contract *ReferenceVaultCaller // Generic read-only contract binding to access the raw methods on
}

// ReferenceVaultTransactorRaw is an auto generated low-level write-only Go binding around an Ethereum contract.
type ReferenceVaultTransactorRaw struct {
	Contract *ReferenceVaultTransactor // Generic write-only contract binding to access the raw methods on
}

// NewReferenceVault creates a new instance of ReferenceVault, bound to a specific deployed contract.
func NewReferenceVault(address common.Address, backend bind.ContractBackend) (*ReferenceVault, error) {
	contract, err := bindReferenceVault(address, backend, backend, backend)
	if err != nil {
		return nil, err
	}
	return &ReferenceVault{ReferenceVaultCaller: ReferenceVaultCaller{contract: contract}, ReferenceVaultTransactor: ReferenceVaultTransactor{contract: contract}, ReferenceVaultFilterer: ReferenceVaultFilterer{contract: contract}}, nil
}

// NewReferenceVaultCaller creates a new read-only instance of ReferenceVault, bound to a specific deployed contract.
func NewReferenceVaultCaller(address common.Address, caller bind.ContractCaller) (*ReferenceVaultCaller, error) {
	contract, err := bindReferenceVault(address, caller, nil, nil)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultCaller{contract: contract}, nil
}

// NewReferenceVaultTransactor creates a new write-only instance of ReferenceVault, bound to a specific deployed contract.
func NewReferenceVaultTransactor(address common.Address, transactor bind.ContractTransactor) (*ReferenceVaultTransactor, error) {
	contract, err := bindReferenceVault(address, nil, transactor, nil)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultTransactor{contract: contract}, nil
}

// NewReferenceVaultFilterer creates a new log filterer instance of ReferenceVault, bound to a specific deployed contract.
func NewReferenceVaultFilterer(address common.Address, filterer bind.ContractFilterer) (*ReferenceVaultFilterer, error) {
	contract, err := bindReferenceVault(address, nil, nil, filterer)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultFilterer{contract: contract}, nil
}

// bindReferenceVault binds a generic wrapper to an already deployed contract.
func bindReferenceVault(address common.Address, caller bind.ContractCaller, transactor bind.ContractTransactor, filterer bind.ContractFilterer) (*bind.BoundContract, error) {
	parsed, err := ReferenceVaultMetaData.GetAbi()
	if err != nil {
		return nil, err
	}
	return bind.NewBoundContract(address, *parsed, caller, transactor, filterer), nil
}

// Call invokes the (constant) contract method with params as input values and
// sets the output to result. The result type might be a single field for simple
// returns, a slice of interfaces for anonymous returns and a struct for named
// returns.
func (_ReferenceVault *ReferenceVaultRaw) Call(opts *bind.CallOpts, result *[]interface{}, method string, params ...interface{}) error {
	return _ReferenceVault.Contract.ReferenceVaultCaller.contract.Call(opts, result, method, params...)
}

// Transfer initiates a plain transaction to move funds to the contract, calling
// its default method if one is available.
func (_ReferenceVault *ReferenceVaultRaw) Transfer(opts *bind.TransactOpts) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ReferenceVaultTransactor.contract.Transfer(opts)
}

// Transact invokes the (paid) contract method with params as input values.
func (_ReferenceVault *ReferenceVaultRaw) Transact(opts *bind.TransactOpts, method string, params ...interface{}) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ReferenceVaultTransactor.contract.Transact(opts, method, params...)
}

// Call invokes the (constant) contract method with params as input values and
// sets the output to result. The result type might be a single field for simple
// returns, a slice of interfaces for anonymous returns and a struct for named
// returns.
func (_ReferenceVault *ReferenceVaultCallerRaw) Call(opts *bind.CallOpts, result *[]interface{}, method string, params ...interface{}) error {
	return _ReferenceVault.Contract.contract.Call(opts, result, method, params...)
}

// Transfer initiates a plain transaction to move funds to the contract, calling
// its default method if one is available.
func (_ReferenceVault *ReferenceVaultTransactorRaw) Transfer(opts *bind.TransactOpts) (*types.Transaction, error) {
	return _ReferenceVault.Contract.contract.Transfer(opts)
}

// Transact invokes the (paid) contract method with params as input values.
func (_ReferenceVault *ReferenceVaultTransactorRaw) Transact(opts *bind.TransactOpts, method string, params ...interface{}) (*types.Transaction, error) {
	return _ReferenceVault.Contract.contract.Transact(opts, method, params...)
}

// Allowance is a free data retrieval call binding the contract method 0xdd62ed3e.
//
// Solidity: function allowance(address , address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) Allowance(opts *bind.CallOpts, arg0 common.Address, arg1 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "allowance", arg0, arg1)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// Allowance is a free data retrieval call binding the contract method 0xdd62ed3e.
//
// Solidity: function allowance(address , address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) Allowance(arg0 common.Address, arg1 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Allowance(&_ReferenceVault.CallOpts, arg0, arg1)
}

// Allowance is a free data retrieval call binding the contract method 0xdd62ed3e.
//
// Solidity: function allowance(address , address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) Allowance(arg0 common.Address, arg1 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Allowance(&_ReferenceVault.CallOpts, arg0, arg1)
}

// Asset is a free data retrieval call binding the contract method 0x38d52e0f.
//
// Solidity: function asset() view returns(address)
func (_ReferenceVault *ReferenceVaultCaller) Asset(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "asset")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Asset is a free data retrieval call binding the contract method 0x38d52e0f.
//
// Solidity: function asset() view returns(address)
func (_ReferenceVault *ReferenceVaultSession) Asset() (common.Address, error) {
	return _ReferenceVault.Contract.Asset(&_ReferenceVault.CallOpts)
}

// Asset is a free data retrieval call binding the contract method 0x38d52e0f.
//
// Solidity: function asset() view returns(address)
func (_ReferenceVault *ReferenceVaultCallerSession) Asset() (common.Address, error) {
	return _ReferenceVault.Contract.Asset(&_ReferenceVault.CallOpts)
}

// BalanceOf is a free data retrieval call binding the contract method 0x70a08231.
//
// Solidity: function balanceOf(address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) BalanceOf(opts *bind.CallOpts, arg0 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "balanceOf", arg0)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// BalanceOf is a free data retrieval call binding the contract method 0x70a08231.
//
// Solidity: function balanceOf(address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) BalanceOf(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.BalanceOf(&_ReferenceVault.CallOpts, arg0)
}

// BalanceOf is a free data retrieval call binding the contract method 0x70a08231.
//
// Solidity: function balanceOf(address ) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) BalanceOf(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.BalanceOf(&_ReferenceVault.CallOpts, arg0)
}

// ConvertToAssets is a free data retrieval call binding the contract method 0x07a2d13a.
//
// Solidity: function convertToAssets(uint256 shares) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) ConvertToAssets(opts *bind.CallOpts, shares *big.Int) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "convertToAssets", shares)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// ConvertToAssets is a free data retrieval call binding the contract method 0x07a2d13a.
//
// Solidity: function convertToAssets(uint256 shares) view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) ConvertToAssets(shares *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.ConvertToAssets(&_ReferenceVault.CallOpts, shares)
}

// ConvertToAssets is a free data retrieval call binding the contract method 0x07a2d13a.
//
// Solidity: function convertToAssets(uint256 shares) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) ConvertToAssets(shares *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.ConvertToAssets(&_ReferenceVault.CallOpts, shares)
}

// ConvertToShares is a free data retrieval call binding the contract method 0xc6e6f592.
//
// Solidity: function convertToShares(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) ConvertToShares(opts *bind.CallOpts, assets *big.Int) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "convertToShares", assets)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// ConvertToShares is a free data retrieval call binding the contract method 0xc6e6f592.
//
// Solidity: function convertToShares(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) ConvertToShares(assets *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.ConvertToShares(&_ReferenceVault.CallOpts, assets)
}

// ConvertToShares is a free data retrieval call binding the contract method 0xc6e6f592.
//
// Solidity: function convertToShares(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) ConvertToShares(assets *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.ConvertToShares(&_ReferenceVault.CallOpts, assets)
}

// Custodian is a free data retrieval call binding the contract method 0x375b74c3.
//
// Solidity: function custodian() view returns(address)
func (_ReferenceVault *ReferenceVaultCaller) Custodian(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "custodian")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Custodian is a free data retrieval call binding the contract method 0x375b74c3.
//
// Solidity: function custodian() view returns(address)
func (_ReferenceVault *ReferenceVaultSession) Custodian() (common.Address, error) {
	return _ReferenceVault.Contract.Custodian(&_ReferenceVault.CallOpts)
}

// Custodian is a free data retrieval call binding the contract method 0x375b74c3.
//
// Solidity: function custodian() view returns(address)
func (_ReferenceVault *ReferenceVaultCallerSession) Custodian() (common.Address, error) {
	return _ReferenceVault.Contract.Custodian(&_ReferenceVault.CallOpts)
}

// Decimals is a free data retrieval call binding the contract method 0x313ce567.
//
// Solidity: function decimals() view returns(uint8)
func (_ReferenceVault *ReferenceVaultCaller) Decimals(opts *bind.CallOpts) (uint8, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "decimals")

	if err != nil {
		return *new(uint8), err
	}

	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)

	return out0, err

}

// Decimals is a free data retrieval call binding the contract method 0x313ce567.
//
// Solidity: function decimals() view returns(uint8)
func (_ReferenceVault *ReferenceVaultSession) Decimals() (uint8, error) {
	return _ReferenceVault.Contract.Decimals(&_ReferenceVault.CallOpts)
}

// Decimals is a free data retrieval call binding the contract method 0x313ce567.
//
// Solidity: function decimals() view returns(uint8)
func (_ReferenceVault *ReferenceVaultCallerSession) Decimals() (uint8, error) {
	return _ReferenceVault.Contract.Decimals(&_ReferenceVault.CallOpts)
}

// DepositCount is a free data retrieval call binding the contract method 0x2dfdf0b5.
//
// Solidity: function depositCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) DepositCount(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "depositCount")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// DepositCount is a free data retrieval call binding the contract method 0x2dfdf0b5.
//
// Solidity: function depositCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) DepositCount() (*big.Int, error) {
	return _ReferenceVault.Contract.DepositCount(&_ReferenceVault.CallOpts)
}

// DepositCount is a free data retrieval call binding the contract method 0x2dfdf0b5.
//
// Solidity: function depositCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) DepositCount() (*big.Int, error) {
	return _ReferenceVault.Contract.DepositCount(&_ReferenceVault.CallOpts)
}

// Manager is a free data retrieval call binding the contract method 0x481c6a75.
//
// Solidity: function manager() view returns(address)
func (_ReferenceVault *ReferenceVaultCaller) Manager(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "manager")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Manager is a free data retrieval call binding the contract method 0x481c6a75.
//
// Solidity: function manager() view returns(address)
func (_ReferenceVault *ReferenceVaultSession) Manager() (common.Address, error) {
	return _ReferenceVault.Contract.Manager(&_ReferenceVault.CallOpts)
}

// Manager is a free data retrieval call binding the contract method 0x481c6a75.
//
// Solidity: function manager() view returns(address)
func (_ReferenceVault *ReferenceVaultCallerSession) Manager() (common.Address, error) {
	return _ReferenceVault.Contract.Manager(&_ReferenceVault.CallOpts)
}

// MaxDeposit is a free data retrieval call binding the contract method 0x402d267d.
//
// Solidity: function maxDeposit(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) MaxDeposit(opts *bind.CallOpts, arg0 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "maxDeposit", arg0)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// MaxDeposit is a free data retrieval call binding the contract method 0x402d267d.
//
// Solidity: function maxDeposit(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) MaxDeposit(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxDeposit(&_ReferenceVault.CallOpts, arg0)
}

// MaxDeposit is a free data retrieval call binding the contract method 0x402d267d.
//
// Solidity: function maxDeposit(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) MaxDeposit(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxDeposit(&_ReferenceVault.CallOpts, arg0)
}

// MaxMint is a free data retrieval call binding the contract method 0xc63d75b6.
//
// Solidity: function maxMint(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) MaxMint(opts *bind.CallOpts, arg0 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "maxMint", arg0)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// MaxMint is a free data retrieval call binding the contract method 0xc63d75b6.
//
// Solidity: function maxMint(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) MaxMint(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxMint(&_ReferenceVault.CallOpts, arg0)
}

// MaxMint is a free data retrieval call binding the contract method 0xc63d75b6.
//
// Solidity: function maxMint(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) MaxMint(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxMint(&_ReferenceVault.CallOpts, arg0)
}

// MaxRedeem is a free data retrieval call binding the contract method 0xd905777e.
//
// Solidity: function maxRedeem(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) MaxRedeem(opts *bind.CallOpts, arg0 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "maxRedeem", arg0)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// MaxRedeem is a free data retrieval call binding the contract method 0xd905777e.
//
// Solidity: function maxRedeem(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) MaxRedeem(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxRedeem(&_ReferenceVault.CallOpts, arg0)
}

// MaxRedeem is a free data retrieval call binding the contract method 0xd905777e.
//
// Solidity: function maxRedeem(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) MaxRedeem(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxRedeem(&_ReferenceVault.CallOpts, arg0)
}

// MaxWithdraw is a free data retrieval call binding the contract method 0xce96cb77.
//
// Solidity: function maxWithdraw(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) MaxWithdraw(opts *bind.CallOpts, arg0 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "maxWithdraw", arg0)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// MaxWithdraw is a free data retrieval call binding the contract method 0xce96cb77.
//
// Solidity: function maxWithdraw(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) MaxWithdraw(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxWithdraw(&_ReferenceVault.CallOpts, arg0)
}

// MaxWithdraw is a free data retrieval call binding the contract method 0xce96cb77.
//
// Solidity: function maxWithdraw(address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) MaxWithdraw(arg0 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.MaxWithdraw(&_ReferenceVault.CallOpts, arg0)
}

// Name is a free data retrieval call binding the contract method 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (_ReferenceVault *ReferenceVaultCaller) Name(opts *bind.CallOpts) (string, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "name")

	if err != nil {
		return *new(string), err
	}

	out0 := *abi.ConvertType(out[0], new(string)).(*string)

	return out0, err

}

// Name is a free data retrieval call binding the contract method 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (_ReferenceVault *ReferenceVaultSession) Name() (string, error) {
	return _ReferenceVault.Contract.Name(&_ReferenceVault.CallOpts)
}

// Name is a free data retrieval call binding the contract method 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (_ReferenceVault *ReferenceVaultCallerSession) Name() (string, error) {
	return _ReferenceVault.Contract.Name(&_ReferenceVault.CallOpts)
}

// NavCount is a free data retrieval call binding the contract method 0x20f1240f.
//
// Solidity: function navCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) NavCount(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "navCount")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// NavCount is a free data retrieval call binding the contract method 0x20f1240f.
//
// Solidity: function navCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) NavCount() (*big.Int, error) {
	return _ReferenceVault.Contract.NavCount(&_ReferenceVault.CallOpts)
}

// NavCount is a free data retrieval call binding the contract method 0x20f1240f.
//
// Solidity: function navCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) NavCount() (*big.Int, error) {
	return _ReferenceVault.Contract.NavCount(&_ReferenceVault.CallOpts)
}

// NavPerShare is a free data retrieval call binding the contract method 0xae097223.
//
// Solidity: function navPerShare() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) NavPerShare(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "navPerShare")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// NavPerShare is a free data retrieval call binding the contract method 0xae097223.
//
// Solidity: function navPerShare() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) NavPerShare() (*big.Int, error) {
	return _ReferenceVault.Contract.NavPerShare(&_ReferenceVault.CallOpts)
}

// NavPerShare is a free data retrieval call binding the contract method 0xae097223.
//
// Solidity: function navPerShare() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) NavPerShare() (*big.Int, error) {
	return _ReferenceVault.Contract.NavPerShare(&_ReferenceVault.CallOpts)
}

// Oracle is a free data retrieval call binding the contract method 0x7dc0d1d0.
//
// Solidity: function oracle() view returns(address)
func (_ReferenceVault *ReferenceVaultCaller) Oracle(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "oracle")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Oracle is a free data retrieval call binding the contract method 0x7dc0d1d0.
//
// Solidity: function oracle() view returns(address)
func (_ReferenceVault *ReferenceVaultSession) Oracle() (common.Address, error) {
	return _ReferenceVault.Contract.Oracle(&_ReferenceVault.CallOpts)
}

// Oracle is a free data retrieval call binding the contract method 0x7dc0d1d0.
//
// Solidity: function oracle() view returns(address)
func (_ReferenceVault *ReferenceVaultCallerSession) Oracle() (common.Address, error) {
	return _ReferenceVault.Contract.Oracle(&_ReferenceVault.CallOpts)
}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceVault *ReferenceVaultCaller) Owner(opts *bind.CallOpts) (common.Address, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "owner")

	if err != nil {
		return *new(common.Address), err
	}

	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)

	return out0, err

}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceVault *ReferenceVaultSession) Owner() (common.Address, error) {
	return _ReferenceVault.Contract.Owner(&_ReferenceVault.CallOpts)
}

// Owner is a free data retrieval call binding the contract method 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (_ReferenceVault *ReferenceVaultCallerSession) Owner() (common.Address, error) {
	return _ReferenceVault.Contract.Owner(&_ReferenceVault.CallOpts)
}

// PreviewDeposit is a free data retrieval call binding the contract method 0xef8b30f7.
//
// Solidity: function previewDeposit(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) PreviewDeposit(opts *bind.CallOpts, assets *big.Int) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "previewDeposit", assets)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// PreviewDeposit is a free data retrieval call binding the contract method 0xef8b30f7.
//
// Solidity: function previewDeposit(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) PreviewDeposit(assets *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.PreviewDeposit(&_ReferenceVault.CallOpts, assets)
}

// PreviewDeposit is a free data retrieval call binding the contract method 0xef8b30f7.
//
// Solidity: function previewDeposit(uint256 assets) view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) PreviewDeposit(assets *big.Int) (*big.Int, error) {
	return _ReferenceVault.Contract.PreviewDeposit(&_ReferenceVault.CallOpts, assets)
}

// Redeem is a free data retrieval call binding the contract method 0xba087652.
//
// Solidity: function redeem(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) Redeem(opts *bind.CallOpts, arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "redeem", arg0, arg1, arg2)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// Redeem is a free data retrieval call binding the contract method 0xba087652.
//
// Solidity: function redeem(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) Redeem(arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Redeem(&_ReferenceVault.CallOpts, arg0, arg1, arg2)
}

// Redeem is a free data retrieval call binding the contract method 0xba087652.
//
// Solidity: function redeem(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) Redeem(arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Redeem(&_ReferenceVault.CallOpts, arg0, arg1, arg2)
}

// Request is a free data retrieval call binding the contract method 0xd845a4b3.
//
// Solidity: function request(uint256 requestIndex) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256))
func (_ReferenceVault *ReferenceVaultCaller) Request(opts *bind.CallOpts, requestIndex *big.Int) (ReferenceVaultRequest, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "request", requestIndex)

	if err != nil {
		return *new(ReferenceVaultRequest), err
	}

	out0 := *abi.ConvertType(out[0], new(ReferenceVaultRequest)).(*ReferenceVaultRequest)

	return out0, err

}

// Request is a free data retrieval call binding the contract method 0xd845a4b3.
//
// Solidity: function request(uint256 requestIndex) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256))
func (_ReferenceVault *ReferenceVaultSession) Request(requestIndex *big.Int) (ReferenceVaultRequest, error) {
	return _ReferenceVault.Contract.Request(&_ReferenceVault.CallOpts, requestIndex)
}

// Request is a free data retrieval call binding the contract method 0xd845a4b3.
//
// Solidity: function request(uint256 requestIndex) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256))
func (_ReferenceVault *ReferenceVaultCallerSession) Request(requestIndex *big.Int) (ReferenceVaultRequest, error) {
	return _ReferenceVault.Contract.Request(&_ReferenceVault.CallOpts, requestIndex)
}

// RequestCount is a free data retrieval call binding the contract method 0x5badbe4c.
//
// Solidity: function requestCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) RequestCount(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "requestCount")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// RequestCount is a free data retrieval call binding the contract method 0x5badbe4c.
//
// Solidity: function requestCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) RequestCount() (*big.Int, error) {
	return _ReferenceVault.Contract.RequestCount(&_ReferenceVault.CallOpts)
}

// RequestCount is a free data retrieval call binding the contract method 0x5badbe4c.
//
// Solidity: function requestCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) RequestCount() (*big.Int, error) {
	return _ReferenceVault.Contract.RequestCount(&_ReferenceVault.CallOpts)
}

// RequestTtl is a free data retrieval call binding the contract method 0x3aa9c131.
//
// Solidity: function requestTtl() view returns(uint64)
func (_ReferenceVault *ReferenceVaultCaller) RequestTtl(opts *bind.CallOpts) (uint64, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "requestTtl")

	if err != nil {
		return *new(uint64), err
	}

	out0 := *abi.ConvertType(out[0], new(uint64)).(*uint64)

	return out0, err

}

// RequestTtl is a free data retrieval call binding the contract method 0x3aa9c131.
//
// Solidity: function requestTtl() view returns(uint64)
func (_ReferenceVault *ReferenceVaultSession) RequestTtl() (uint64, error) {
	return _ReferenceVault.Contract.RequestTtl(&_ReferenceVault.CallOpts)
}

// RequestTtl is a free data retrieval call binding the contract method 0x3aa9c131.
//
// Solidity: function requestTtl() view returns(uint64)
func (_ReferenceVault *ReferenceVaultCallerSession) RequestTtl() (uint64, error) {
	return _ReferenceVault.Contract.RequestTtl(&_ReferenceVault.CallOpts)
}

// Requests is a free data retrieval call binding the contract method 0x9089add8.
//
// Solidity: function requests(uint256 first, uint256 count) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256)[] page)
func (_ReferenceVault *ReferenceVaultCaller) Requests(opts *bind.CallOpts, first *big.Int, count *big.Int) ([]ReferenceVaultRequest, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "requests", first, count)

	if err != nil {
		return *new([]ReferenceVaultRequest), err
	}

	out0 := *abi.ConvertType(out[0], new([]ReferenceVaultRequest)).(*[]ReferenceVaultRequest)

	return out0, err

}

// Requests is a free data retrieval call binding the contract method 0x9089add8.
//
// Solidity: function requests(uint256 first, uint256 count) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256)[] page)
func (_ReferenceVault *ReferenceVaultSession) Requests(first *big.Int, count *big.Int) ([]ReferenceVaultRequest, error) {
	return _ReferenceVault.Contract.Requests(&_ReferenceVault.CallOpts, first, count)
}

// Requests is a free data retrieval call binding the contract method 0x9089add8.
//
// Solidity: function requests(uint256 first, uint256 count) view returns((address,uint64,uint32,address,uint8,uint256,uint256,uint256)[] page)
func (_ReferenceVault *ReferenceVaultCallerSession) Requests(first *big.Int, count *big.Int) ([]ReferenceVaultRequest, error) {
	return _ReferenceVault.Contract.Requests(&_ReferenceVault.CallOpts, first, count)
}

// SettlementCount is a free data retrieval call binding the contract method 0x037eca76.
//
// Solidity: function settlementCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) SettlementCount(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "settlementCount")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// SettlementCount is a free data retrieval call binding the contract method 0x037eca76.
//
// Solidity: function settlementCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) SettlementCount() (*big.Int, error) {
	return _ReferenceVault.Contract.SettlementCount(&_ReferenceVault.CallOpts)
}

// SettlementCount is a free data retrieval call binding the contract method 0x037eca76.
//
// Solidity: function settlementCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) SettlementCount() (*big.Int, error) {
	return _ReferenceVault.Contract.SettlementCount(&_ReferenceVault.CallOpts)
}

// SweepCount is a free data retrieval call binding the contract method 0x750102a8.
//
// Solidity: function sweepCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) SweepCount(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "sweepCount")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// SweepCount is a free data retrieval call binding the contract method 0x750102a8.
//
// Solidity: function sweepCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) SweepCount() (*big.Int, error) {
	return _ReferenceVault.Contract.SweepCount(&_ReferenceVault.CallOpts)
}

// SweepCount is a free data retrieval call binding the contract method 0x750102a8.
//
// Solidity: function sweepCount() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) SweepCount() (*big.Int, error) {
	return _ReferenceVault.Contract.SweepCount(&_ReferenceVault.CallOpts)
}

// SweptTo is a free data retrieval call binding the contract method 0x6b282373.
//
// Solidity: function sweptTo() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) SweptTo(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "sweptTo")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// SweptTo is a free data retrieval call binding the contract method 0x6b282373.
//
// Solidity: function sweptTo() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) SweptTo() (*big.Int, error) {
	return _ReferenceVault.Contract.SweptTo(&_ReferenceVault.CallOpts)
}

// SweptTo is a free data retrieval call binding the contract method 0x6b282373.
//
// Solidity: function sweptTo() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) SweptTo() (*big.Int, error) {
	return _ReferenceVault.Contract.SweptTo(&_ReferenceVault.CallOpts)
}

// Symbol is a free data retrieval call binding the contract method 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (_ReferenceVault *ReferenceVaultCaller) Symbol(opts *bind.CallOpts) (string, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "symbol")

	if err != nil {
		return *new(string), err
	}

	out0 := *abi.ConvertType(out[0], new(string)).(*string)

	return out0, err

}

// Symbol is a free data retrieval call binding the contract method 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (_ReferenceVault *ReferenceVaultSession) Symbol() (string, error) {
	return _ReferenceVault.Contract.Symbol(&_ReferenceVault.CallOpts)
}

// Symbol is a free data retrieval call binding the contract method 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (_ReferenceVault *ReferenceVaultCallerSession) Symbol() (string, error) {
	return _ReferenceVault.Contract.Symbol(&_ReferenceVault.CallOpts)
}

// TotalAssets is a free data retrieval call binding the contract method 0x01e1d114.
//
// Solidity: function totalAssets() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) TotalAssets(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "totalAssets")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// TotalAssets is a free data retrieval call binding the contract method 0x01e1d114.
//
// Solidity: function totalAssets() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) TotalAssets() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalAssets(&_ReferenceVault.CallOpts)
}

// TotalAssets is a free data retrieval call binding the contract method 0x01e1d114.
//
// Solidity: function totalAssets() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) TotalAssets() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalAssets(&_ReferenceVault.CallOpts)
}

// TotalClaimed is a free data retrieval call binding the contract method 0xd54ad2a1.
//
// Solidity: function totalClaimed() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) TotalClaimed(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "totalClaimed")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// TotalClaimed is a free data retrieval call binding the contract method 0xd54ad2a1.
//
// Solidity: function totalClaimed() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) TotalClaimed() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalClaimed(&_ReferenceVault.CallOpts)
}

// TotalClaimed is a free data retrieval call binding the contract method 0xd54ad2a1.
//
// Solidity: function totalClaimed() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) TotalClaimed() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalClaimed(&_ReferenceVault.CallOpts)
}

// TotalDeposited is a free data retrieval call binding the contract method 0xff50abdc.
//
// Solidity: function totalDeposited() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) TotalDeposited(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "totalDeposited")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// TotalDeposited is a free data retrieval call binding the contract method 0xff50abdc.
//
// Solidity: function totalDeposited() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) TotalDeposited() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalDeposited(&_ReferenceVault.CallOpts)
}

// TotalDeposited is a free data retrieval call binding the contract method 0xff50abdc.
//
// Solidity: function totalDeposited() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) TotalDeposited() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalDeposited(&_ReferenceVault.CallOpts)
}

// TotalSupply is a free data retrieval call binding the contract method 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) TotalSupply(opts *bind.CallOpts) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "totalSupply")

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// TotalSupply is a free data retrieval call binding the contract method 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) TotalSupply() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalSupply(&_ReferenceVault.CallOpts)
}

// TotalSupply is a free data retrieval call binding the contract method 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) TotalSupply() (*big.Int, error) {
	return _ReferenceVault.Contract.TotalSupply(&_ReferenceVault.CallOpts)
}

// Withdraw is a free data retrieval call binding the contract method 0xb460af94.
//
// Solidity: function withdraw(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCaller) Withdraw(opts *bind.CallOpts, arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	var out []interface{}
	err := _ReferenceVault.contract.Call(opts, &out, "withdraw", arg0, arg1, arg2)

	if err != nil {
		return *new(*big.Int), err
	}

	out0 := *abi.ConvertType(out[0], new(*big.Int)).(**big.Int)

	return out0, err

}

// Withdraw is a free data retrieval call binding the contract method 0xb460af94.
//
// Solidity: function withdraw(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultSession) Withdraw(arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Withdraw(&_ReferenceVault.CallOpts, arg0, arg1, arg2)
}

// Withdraw is a free data retrieval call binding the contract method 0xb460af94.
//
// Solidity: function withdraw(uint256 , address , address ) pure returns(uint256)
func (_ReferenceVault *ReferenceVaultCallerSession) Withdraw(arg0 *big.Int, arg1 common.Address, arg2 common.Address) (*big.Int, error) {
	return _ReferenceVault.Contract.Withdraw(&_ReferenceVault.CallOpts, arg0, arg1, arg2)
}

// Approve is a paid mutator transaction binding the contract method 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactor) Approve(opts *bind.TransactOpts, spender common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "approve", spender, amount)
}

// Approve is a paid mutator transaction binding the contract method 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultSession) Approve(spender common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Approve(&_ReferenceVault.TransactOpts, spender, amount)
}

// Approve is a paid mutator transaction binding the contract method 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactorSession) Approve(spender common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Approve(&_ReferenceVault.TransactOpts, spender, amount)
}

// CancelWithdrawal is a paid mutator transaction binding the contract method 0x3efcfda4.
//
// Solidity: function cancelWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultTransactor) CancelWithdrawal(opts *bind.TransactOpts, requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "cancelWithdrawal", requestIndex)
}

// CancelWithdrawal is a paid mutator transaction binding the contract method 0x3efcfda4.
//
// Solidity: function cancelWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultSession) CancelWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.CancelWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// CancelWithdrawal is a paid mutator transaction binding the contract method 0x3efcfda4.
//
// Solidity: function cancelWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultTransactorSession) CancelWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.CancelWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// ClaimWithdrawal is a paid mutator transaction binding the contract method 0xf8444436.
//
// Solidity: function claimWithdrawal(uint256 requestIndex) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactor) ClaimWithdrawal(opts *bind.TransactOpts, requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "claimWithdrawal", requestIndex)
}

// ClaimWithdrawal is a paid mutator transaction binding the contract method 0xf8444436.
//
// Solidity: function claimWithdrawal(uint256 requestIndex) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultSession) ClaimWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ClaimWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// ClaimWithdrawal is a paid mutator transaction binding the contract method 0xf8444436.
//
// Solidity: function claimWithdrawal(uint256 requestIndex) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactorSession) ClaimWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ClaimWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// Deposit is a paid mutator transaction binding the contract method 0x6e553f65.
//
// Solidity: function deposit(uint256 assets, address receiver) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultTransactor) Deposit(opts *bind.TransactOpts, assets *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "deposit", assets, receiver)
}

// Deposit is a paid mutator transaction binding the contract method 0x6e553f65.
//
// Solidity: function deposit(uint256 assets, address receiver) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultSession) Deposit(assets *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Deposit(&_ReferenceVault.TransactOpts, assets, receiver)
}

// Deposit is a paid mutator transaction binding the contract method 0x6e553f65.
//
// Solidity: function deposit(uint256 assets, address receiver) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultTransactorSession) Deposit(assets *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Deposit(&_ReferenceVault.TransactOpts, assets, receiver)
}

// DepositReferral is a paid mutator transaction binding the contract method 0xe880afd2.
//
// Solidity: function deposit(uint256 assets, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultTransactor) DepositReferral(opts *bind.TransactOpts, assets *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "deposit0", assets, receiver, partnerId)
}

// DepositReferral is a paid mutator transaction binding the contract method 0xe880afd2.
//
// Solidity: function deposit(uint256 assets, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultSession) DepositReferral(assets *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.DepositReferral(&_ReferenceVault.TransactOpts, assets, receiver, partnerId)
}

// DepositReferral is a paid mutator transaction binding the contract method 0xe880afd2.
//
// Solidity: function deposit(uint256 assets, address receiver, uint32 partnerId) returns(uint256 shares)
func (_ReferenceVault *ReferenceVaultTransactorSession) DepositReferral(assets *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.DepositReferral(&_ReferenceVault.TransactOpts, assets, receiver, partnerId)
}

// ExpireWithdrawal is a paid mutator transaction binding the contract method 0x7336e88c.
//
// Solidity: function expireWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultTransactor) ExpireWithdrawal(opts *bind.TransactOpts, requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "expireWithdrawal", requestIndex)
}

// ExpireWithdrawal is a paid mutator transaction binding the contract method 0x7336e88c.
//
// Solidity: function expireWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultSession) ExpireWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ExpireWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// ExpireWithdrawal is a paid mutator transaction binding the contract method 0x7336e88c.
//
// Solidity: function expireWithdrawal(uint256 requestIndex) returns()
func (_ReferenceVault *ReferenceVaultTransactorSession) ExpireWithdrawal(requestIndex *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.ExpireWithdrawal(&_ReferenceVault.TransactOpts, requestIndex)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x21739779.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactor) RequestWithdrawal(opts *bind.TransactOpts, shares *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "requestWithdrawal", shares, receiver)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x21739779.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultSession) RequestWithdrawal(shares *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawal(&_ReferenceVault.TransactOpts, shares, receiver)
}

// RequestWithdrawal is a paid mutator transaction binding the contract method 0x21739779.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactorSession) RequestWithdrawal(shares *big.Int, receiver common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawal(&_ReferenceVault.TransactOpts, shares, receiver)
}

// RequestWithdrawalReferral is a paid mutator transaction binding the contract method 0x82e46584.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactor) RequestWithdrawalReferral(opts *bind.TransactOpts, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "requestWithdrawal0", shares, receiver, partnerId)
}

// RequestWithdrawalReferral is a paid mutator transaction binding the contract method 0x82e46584.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultSession) RequestWithdrawalReferral(shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawalReferral(&_ReferenceVault.TransactOpts, shares, receiver, partnerId)
}

// RequestWithdrawalReferral is a paid mutator transaction binding the contract method 0x82e46584.
//
// Solidity: function requestWithdrawal(uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactorSession) RequestWithdrawalReferral(shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawalReferral(&_ReferenceVault.TransactOpts, shares, receiver, partnerId)
}

// RequestWithdrawalFor is a paid mutator transaction binding the contract method 0x7dd01f36.
//
// Solidity: function requestWithdrawalFor(address holder, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactor) RequestWithdrawalFor(opts *bind.TransactOpts, holder common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "requestWithdrawalFor", holder, shares, receiver, partnerId)
}

// RequestWithdrawalFor is a paid mutator transaction binding the contract method 0x7dd01f36.
//
// Solidity: function requestWithdrawalFor(address holder, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultSession) RequestWithdrawalFor(holder common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawalFor(&_ReferenceVault.TransactOpts, holder, shares, receiver, partnerId)
}

// RequestWithdrawalFor is a paid mutator transaction binding the contract method 0x7dd01f36.
//
// Solidity: function requestWithdrawalFor(address holder, uint256 shares, address receiver, uint32 partnerId) returns(uint256 requestIndex)
func (_ReferenceVault *ReferenceVaultTransactorSession) RequestWithdrawalFor(holder common.Address, shares *big.Int, receiver common.Address, partnerId uint32) (*types.Transaction, error) {
	return _ReferenceVault.Contract.RequestWithdrawalFor(&_ReferenceVault.TransactOpts, holder, shares, receiver, partnerId)
}

// SetRequestTtl is a paid mutator transaction binding the contract method 0xc9524647.
//
// Solidity: function setRequestTtl(uint64 seconds_) returns()
func (_ReferenceVault *ReferenceVaultTransactor) SetRequestTtl(opts *bind.TransactOpts, seconds_ uint64) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "setRequestTtl", seconds_)
}

// SetRequestTtl is a paid mutator transaction binding the contract method 0xc9524647.
//
// Solidity: function setRequestTtl(uint64 seconds_) returns()
func (_ReferenceVault *ReferenceVaultSession) SetRequestTtl(seconds_ uint64) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SetRequestTtl(&_ReferenceVault.TransactOpts, seconds_)
}

// SetRequestTtl is a paid mutator transaction binding the contract method 0xc9524647.
//
// Solidity: function setRequestTtl(uint64 seconds_) returns()
func (_ReferenceVault *ReferenceVaultTransactorSession) SetRequestTtl(seconds_ uint64) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SetRequestTtl(&_ReferenceVault.TransactOpts, seconds_)
}

// SetRoles is a paid mutator transaction binding the contract method 0x54841e94.
//
// Solidity: function setRoles(address oracle_, address manager_, address custodian_) returns()
func (_ReferenceVault *ReferenceVaultTransactor) SetRoles(opts *bind.TransactOpts, oracle_ common.Address, manager_ common.Address, custodian_ common.Address) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "setRoles", oracle_, manager_, custodian_)
}

// SetRoles is a paid mutator transaction binding the contract method 0x54841e94.
//
// Solidity: function setRoles(address oracle_, address manager_, address custodian_) returns()
func (_ReferenceVault *ReferenceVaultSession) SetRoles(oracle_ common.Address, manager_ common.Address, custodian_ common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SetRoles(&_ReferenceVault.TransactOpts, oracle_, manager_, custodian_)
}

// SetRoles is a paid mutator transaction binding the contract method 0x54841e94.
//
// Solidity: function setRoles(address oracle_, address manager_, address custodian_) returns()
func (_ReferenceVault *ReferenceVaultTransactorSession) SetRoles(oracle_ common.Address, manager_ common.Address, custodian_ common.Address) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SetRoles(&_ReferenceVault.TransactOpts, oracle_, manager_, custodian_)
}

// SettleWithdrawals is a paid mutator transaction binding the contract method 0x5f18b4bd.
//
// Solidity: function settleWithdrawals(uint256[] requestIndexes) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactor) SettleWithdrawals(opts *bind.TransactOpts, requestIndexes []*big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "settleWithdrawals", requestIndexes)
}

// SettleWithdrawals is a paid mutator transaction binding the contract method 0x5f18b4bd.
//
// Solidity: function settleWithdrawals(uint256[] requestIndexes) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultSession) SettleWithdrawals(requestIndexes []*big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SettleWithdrawals(&_ReferenceVault.TransactOpts, requestIndexes)
}

// SettleWithdrawals is a paid mutator transaction binding the contract method 0x5f18b4bd.
//
// Solidity: function settleWithdrawals(uint256[] requestIndexes) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactorSession) SettleWithdrawals(requestIndexes []*big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SettleWithdrawals(&_ReferenceVault.TransactOpts, requestIndexes)
}

// SweepDeposits is a paid mutator transaction binding the contract method 0x7bf7990a.
//
// Solidity: function sweepDeposits(uint256 toDepositId) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactor) SweepDeposits(opts *bind.TransactOpts, toDepositId *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "sweepDeposits", toDepositId)
}

// SweepDeposits is a paid mutator transaction binding the contract method 0x7bf7990a.
//
// Solidity: function sweepDeposits(uint256 toDepositId) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultSession) SweepDeposits(toDepositId *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SweepDeposits(&_ReferenceVault.TransactOpts, toDepositId)
}

// SweepDeposits is a paid mutator transaction binding the contract method 0x7bf7990a.
//
// Solidity: function sweepDeposits(uint256 toDepositId) returns(uint256 assets)
func (_ReferenceVault *ReferenceVaultTransactorSession) SweepDeposits(toDepositId *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.SweepDeposits(&_ReferenceVault.TransactOpts, toDepositId)
}

// Transfer is a paid mutator transaction binding the contract method 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactor) Transfer(opts *bind.TransactOpts, to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "transfer", to, amount)
}

// Transfer is a paid mutator transaction binding the contract method 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultSession) Transfer(to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Transfer(&_ReferenceVault.TransactOpts, to, amount)
}

// Transfer is a paid mutator transaction binding the contract method 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactorSession) Transfer(to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.Transfer(&_ReferenceVault.TransactOpts, to, amount)
}

// TransferFrom is a paid mutator transaction binding the contract method 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactor) TransferFrom(opts *bind.TransactOpts, from common.Address, to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "transferFrom", from, to, amount)
}

// TransferFrom is a paid mutator transaction binding the contract method 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultSession) TransferFrom(from common.Address, to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.TransferFrom(&_ReferenceVault.TransactOpts, from, to, amount)
}

// TransferFrom is a paid mutator transaction binding the contract method 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 amount) returns(bool)
func (_ReferenceVault *ReferenceVaultTransactorSession) TransferFrom(from common.Address, to common.Address, amount *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.TransferFrom(&_ReferenceVault.TransactOpts, from, to, amount)
}

// UpdateNav is a paid mutator transaction binding the contract method 0x6a7360d8.
//
// Solidity: function updateNav(uint256 totalAssets_) returns()
func (_ReferenceVault *ReferenceVaultTransactor) UpdateNav(opts *bind.TransactOpts, totalAssets_ *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.contract.Transact(opts, "updateNav", totalAssets_)
}

// UpdateNav is a paid mutator transaction binding the contract method 0x6a7360d8.
//
// Solidity: function updateNav(uint256 totalAssets_) returns()
func (_ReferenceVault *ReferenceVaultSession) UpdateNav(totalAssets_ *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.UpdateNav(&_ReferenceVault.TransactOpts, totalAssets_)
}

// UpdateNav is a paid mutator transaction binding the contract method 0x6a7360d8.
//
// Solidity: function updateNav(uint256 totalAssets_) returns()
func (_ReferenceVault *ReferenceVaultTransactorSession) UpdateNav(totalAssets_ *big.Int) (*types.Transaction, error) {
	return _ReferenceVault.Contract.UpdateNav(&_ReferenceVault.TransactOpts, totalAssets_)
}

// ReferenceVaultApprovalIterator is returned from FilterApproval and is used to iterate over the raw logs and unpacked data for Approval events raised by the ReferenceVault contract.
type ReferenceVaultApprovalIterator struct {
	Event *ReferenceVaultApproval // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultApprovalIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultApproval)
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
		it.Event = new(ReferenceVaultApproval)
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
func (it *ReferenceVaultApprovalIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultApprovalIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultApproval represents a Approval event raised by the ReferenceVault contract.
type ReferenceVaultApproval struct {
	Owner   common.Address
	Spender common.Address
	Value   *big.Int
	Raw     types.Log // Blockchain specific contextual infos
}

// FilterApproval is a free log retrieval operation binding the contract event 0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) FilterApproval(opts *bind.FilterOpts, owner []common.Address, spender []common.Address) (*ReferenceVaultApprovalIterator, error) {

	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var spenderRule []interface{}
	for _, spenderItem := range spender {
		spenderRule = append(spenderRule, spenderItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "Approval", ownerRule, spenderRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultApprovalIterator{contract: _ReferenceVault.contract, event: "Approval", logs: logs, sub: sub}, nil
}

// WatchApproval is a free log subscription operation binding the contract event 0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) WatchApproval(opts *bind.WatchOpts, sink chan<- *ReferenceVaultApproval, owner []common.Address, spender []common.Address) (event.Subscription, error) {

	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var spenderRule []interface{}
	for _, spenderItem := range spender {
		spenderRule = append(spenderRule, spenderItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "Approval", ownerRule, spenderRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultApproval)
				if err := _ReferenceVault.contract.UnpackLog(event, "Approval", log); err != nil {
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

// ParseApproval is a log parse operation binding the contract event 0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) ParseApproval(log types.Log) (*ReferenceVaultApproval, error) {
	event := new(ReferenceVaultApproval)
	if err := _ReferenceVault.contract.UnpackLog(event, "Approval", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultDepositIterator is returned from FilterDeposit and is used to iterate over the raw logs and unpacked data for Deposit events raised by the ReferenceVault contract.
type ReferenceVaultDepositIterator struct {
	Event *ReferenceVaultDeposit // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultDepositIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultDeposit)
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
		it.Event = new(ReferenceVaultDeposit)
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
func (it *ReferenceVaultDepositIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultDepositIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultDeposit represents a Deposit event raised by the ReferenceVault contract.
type ReferenceVaultDeposit struct {
	Sender common.Address
	Owner  common.Address
	Assets *big.Int
	Shares *big.Int
	Raw    types.Log // Blockchain specific contextual infos
}

// FilterDeposit is a free log retrieval operation binding the contract event 0xdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7.
//
// Solidity: event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) FilterDeposit(opts *bind.FilterOpts, sender []common.Address, owner []common.Address) (*ReferenceVaultDepositIterator, error) {

	var senderRule []interface{}
	for _, senderItem := range sender {
		senderRule = append(senderRule, senderItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "Deposit", senderRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultDepositIterator{contract: _ReferenceVault.contract, event: "Deposit", logs: logs, sub: sub}, nil
}

// WatchDeposit is a free log subscription operation binding the contract event 0xdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7.
//
// Solidity: event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) WatchDeposit(opts *bind.WatchOpts, sink chan<- *ReferenceVaultDeposit, sender []common.Address, owner []common.Address) (event.Subscription, error) {

	var senderRule []interface{}
	for _, senderItem := range sender {
		senderRule = append(senderRule, senderItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "Deposit", senderRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultDeposit)
				if err := _ReferenceVault.contract.UnpackLog(event, "Deposit", log); err != nil {
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

// ParseDeposit is a log parse operation binding the contract event 0xdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7.
//
// Solidity: event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) ParseDeposit(log types.Log) (*ReferenceVaultDeposit, error) {
	event := new(ReferenceVaultDeposit)
	if err := _ReferenceVault.contract.UnpackLog(event, "Deposit", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultDepositAcceptedIterator is returned from FilterDepositAccepted and is used to iterate over the raw logs and unpacked data for DepositAccepted events raised by the ReferenceVault contract.
type ReferenceVaultDepositAcceptedIterator struct {
	Event *ReferenceVaultDepositAccepted // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultDepositAcceptedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultDepositAccepted)
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
		it.Event = new(ReferenceVaultDepositAccepted)
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
func (it *ReferenceVaultDepositAcceptedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultDepositAcceptedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultDepositAccepted represents a DepositAccepted event raised by the ReferenceVault contract.
type ReferenceVaultDepositAccepted struct {
	DepositId *big.Int
	Owner     common.Address
	PartnerId uint32
	Sender    common.Address
	Assets    *big.Int
	Shares    *big.Int
	Raw       types.Log // Blockchain specific contextual infos
}

// FilterDepositAccepted is a free log retrieval operation binding the contract event 0xbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa8057.
//
// Solidity: event DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) FilterDepositAccepted(opts *bind.FilterOpts, depositId []*big.Int, owner []common.Address, partnerId []uint32) (*ReferenceVaultDepositAcceptedIterator, error) {

	var depositIdRule []interface{}
	for _, depositIdItem := range depositId {
		depositIdRule = append(depositIdRule, depositIdItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "DepositAccepted", depositIdRule, ownerRule, partnerIdRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultDepositAcceptedIterator{contract: _ReferenceVault.contract, event: "DepositAccepted", logs: logs, sub: sub}, nil
}

// WatchDepositAccepted is a free log subscription operation binding the contract event 0xbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa8057.
//
// Solidity: event DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) WatchDepositAccepted(opts *bind.WatchOpts, sink chan<- *ReferenceVaultDepositAccepted, depositId []*big.Int, owner []common.Address, partnerId []uint32) (event.Subscription, error) {

	var depositIdRule []interface{}
	for _, depositIdItem := range depositId {
		depositIdRule = append(depositIdRule, depositIdItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "DepositAccepted", depositIdRule, ownerRule, partnerIdRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultDepositAccepted)
				if err := _ReferenceVault.contract.UnpackLog(event, "DepositAccepted", log); err != nil {
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

// ParseDepositAccepted is a log parse operation binding the contract event 0xbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa8057.
//
// Solidity: event DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) ParseDepositAccepted(log types.Log) (*ReferenceVaultDepositAccepted, error) {
	event := new(ReferenceVaultDepositAccepted)
	if err := _ReferenceVault.contract.UnpackLog(event, "DepositAccepted", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultDepositsSweptIterator is returned from FilterDepositsSwept and is used to iterate over the raw logs and unpacked data for DepositsSwept events raised by the ReferenceVault contract.
type ReferenceVaultDepositsSweptIterator struct {
	Event *ReferenceVaultDepositsSwept // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultDepositsSweptIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultDepositsSwept)
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
		it.Event = new(ReferenceVaultDepositsSwept)
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
func (it *ReferenceVaultDepositsSweptIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultDepositsSweptIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultDepositsSwept represents a DepositsSwept event raised by the ReferenceVault contract.
type ReferenceVaultDepositsSwept struct {
	SweepId       *big.Int
	Custodian     common.Address
	FromDepositId *big.Int
	ToDepositId   *big.Int
	Assets        *big.Int
	Raw           types.Log // Blockchain specific contextual infos
}

// FilterDepositsSwept is a free log retrieval operation binding the contract event 0xebb24afaa1938255368713eafd60bea748aebde2bca568a812715a201fa47d67.
//
// Solidity: event DepositsSwept(uint256 indexed sweepId, address indexed custodian, uint256 fromDepositId, uint256 toDepositId, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) FilterDepositsSwept(opts *bind.FilterOpts, sweepId []*big.Int, custodian []common.Address) (*ReferenceVaultDepositsSweptIterator, error) {

	var sweepIdRule []interface{}
	for _, sweepIdItem := range sweepId {
		sweepIdRule = append(sweepIdRule, sweepIdItem)
	}
	var custodianRule []interface{}
	for _, custodianItem := range custodian {
		custodianRule = append(custodianRule, custodianItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "DepositsSwept", sweepIdRule, custodianRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultDepositsSweptIterator{contract: _ReferenceVault.contract, event: "DepositsSwept", logs: logs, sub: sub}, nil
}

// WatchDepositsSwept is a free log subscription operation binding the contract event 0xebb24afaa1938255368713eafd60bea748aebde2bca568a812715a201fa47d67.
//
// Solidity: event DepositsSwept(uint256 indexed sweepId, address indexed custodian, uint256 fromDepositId, uint256 toDepositId, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) WatchDepositsSwept(opts *bind.WatchOpts, sink chan<- *ReferenceVaultDepositsSwept, sweepId []*big.Int, custodian []common.Address) (event.Subscription, error) {

	var sweepIdRule []interface{}
	for _, sweepIdItem := range sweepId {
		sweepIdRule = append(sweepIdRule, sweepIdItem)
	}
	var custodianRule []interface{}
	for _, custodianItem := range custodian {
		custodianRule = append(custodianRule, custodianItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "DepositsSwept", sweepIdRule, custodianRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultDepositsSwept)
				if err := _ReferenceVault.contract.UnpackLog(event, "DepositsSwept", log); err != nil {
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

// ParseDepositsSwept is a log parse operation binding the contract event 0xebb24afaa1938255368713eafd60bea748aebde2bca568a812715a201fa47d67.
//
// Solidity: event DepositsSwept(uint256 indexed sweepId, address indexed custodian, uint256 fromDepositId, uint256 toDepositId, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) ParseDepositsSwept(log types.Log) (*ReferenceVaultDepositsSwept, error) {
	event := new(ReferenceVaultDepositsSwept)
	if err := _ReferenceVault.contract.UnpackLog(event, "DepositsSwept", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultNavUpdatedIterator is returned from FilterNavUpdated and is used to iterate over the raw logs and unpacked data for NavUpdated events raised by the ReferenceVault contract.
type ReferenceVaultNavUpdatedIterator struct {
	Event *ReferenceVaultNavUpdated // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultNavUpdatedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultNavUpdated)
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
		it.Event = new(ReferenceVaultNavUpdated)
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
func (it *ReferenceVaultNavUpdatedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultNavUpdatedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultNavUpdated represents a NavUpdated event raised by the ReferenceVault contract.
type ReferenceVaultNavUpdated struct {
	NavId       *big.Int
	Updater     common.Address
	NavPerShare *big.Int
	TotalAssets *big.Int
	TotalSupply *big.Int
	Raw         types.Log // Blockchain specific contextual infos
}

// FilterNavUpdated is a free log retrieval operation binding the contract event 0x19987253612dbb189dc7f1c655caecc013a35927823f41014343d0f875e1795e.
//
// Solidity: event NavUpdated(uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply)
func (_ReferenceVault *ReferenceVaultFilterer) FilterNavUpdated(opts *bind.FilterOpts, navId []*big.Int, updater []common.Address) (*ReferenceVaultNavUpdatedIterator, error) {

	var navIdRule []interface{}
	for _, navIdItem := range navId {
		navIdRule = append(navIdRule, navIdItem)
	}
	var updaterRule []interface{}
	for _, updaterItem := range updater {
		updaterRule = append(updaterRule, updaterItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "NavUpdated", navIdRule, updaterRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultNavUpdatedIterator{contract: _ReferenceVault.contract, event: "NavUpdated", logs: logs, sub: sub}, nil
}

// WatchNavUpdated is a free log subscription operation binding the contract event 0x19987253612dbb189dc7f1c655caecc013a35927823f41014343d0f875e1795e.
//
// Solidity: event NavUpdated(uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply)
func (_ReferenceVault *ReferenceVaultFilterer) WatchNavUpdated(opts *bind.WatchOpts, sink chan<- *ReferenceVaultNavUpdated, navId []*big.Int, updater []common.Address) (event.Subscription, error) {

	var navIdRule []interface{}
	for _, navIdItem := range navId {
		navIdRule = append(navIdRule, navIdItem)
	}
	var updaterRule []interface{}
	for _, updaterItem := range updater {
		updaterRule = append(updaterRule, updaterItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "NavUpdated", navIdRule, updaterRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultNavUpdated)
				if err := _ReferenceVault.contract.UnpackLog(event, "NavUpdated", log); err != nil {
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

// ParseNavUpdated is a log parse operation binding the contract event 0x19987253612dbb189dc7f1c655caecc013a35927823f41014343d0f875e1795e.
//
// Solidity: event NavUpdated(uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply)
func (_ReferenceVault *ReferenceVaultFilterer) ParseNavUpdated(log types.Log) (*ReferenceVaultNavUpdated, error) {
	event := new(ReferenceVaultNavUpdated)
	if err := _ReferenceVault.contract.UnpackLog(event, "NavUpdated", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultTransferIterator is returned from FilterTransfer and is used to iterate over the raw logs and unpacked data for Transfer events raised by the ReferenceVault contract.
type ReferenceVaultTransferIterator struct {
	Event *ReferenceVaultTransfer // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultTransferIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultTransfer)
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
		it.Event = new(ReferenceVaultTransfer)
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
func (it *ReferenceVaultTransferIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultTransferIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultTransfer represents a Transfer event raised by the ReferenceVault contract.
type ReferenceVaultTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   types.Log // Blockchain specific contextual infos
}

// FilterTransfer is a free log retrieval operation binding the contract event 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) FilterTransfer(opts *bind.FilterOpts, from []common.Address, to []common.Address) (*ReferenceVaultTransferIterator, error) {

	var fromRule []interface{}
	for _, fromItem := range from {
		fromRule = append(fromRule, fromItem)
	}
	var toRule []interface{}
	for _, toItem := range to {
		toRule = append(toRule, toItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "Transfer", fromRule, toRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultTransferIterator{contract: _ReferenceVault.contract, event: "Transfer", logs: logs, sub: sub}, nil
}

// WatchTransfer is a free log subscription operation binding the contract event 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) WatchTransfer(opts *bind.WatchOpts, sink chan<- *ReferenceVaultTransfer, from []common.Address, to []common.Address) (event.Subscription, error) {

	var fromRule []interface{}
	for _, fromItem := range from {
		fromRule = append(fromRule, fromItem)
	}
	var toRule []interface{}
	for _, toItem := range to {
		toRule = append(toRule, toItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "Transfer", fromRule, toRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultTransfer)
				if err := _ReferenceVault.contract.UnpackLog(event, "Transfer", log); err != nil {
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

// ParseTransfer is a log parse operation binding the contract event 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (_ReferenceVault *ReferenceVaultFilterer) ParseTransfer(log types.Log) (*ReferenceVaultTransfer, error) {
	event := new(ReferenceVaultTransfer)
	if err := _ReferenceVault.contract.UnpackLog(event, "Transfer", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawIterator is returned from FilterWithdraw and is used to iterate over the raw logs and unpacked data for Withdraw events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawIterator struct {
	Event *ReferenceVaultWithdraw // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdraw)
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
		it.Event = new(ReferenceVaultWithdraw)
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
func (it *ReferenceVaultWithdrawIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdraw represents a Withdraw event raised by the ReferenceVault contract.
type ReferenceVaultWithdraw struct {
	Sender   common.Address
	Receiver common.Address
	Owner    common.Address
	Assets   *big.Int
	Shares   *big.Int
	Raw      types.Log // Blockchain specific contextual infos
}

// FilterWithdraw is a free log retrieval operation binding the contract event 0xfbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db.
//
// Solidity: event Withdraw(address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdraw(opts *bind.FilterOpts, sender []common.Address, receiver []common.Address, owner []common.Address) (*ReferenceVaultWithdrawIterator, error) {

	var senderRule []interface{}
	for _, senderItem := range sender {
		senderRule = append(senderRule, senderItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "Withdraw", senderRule, receiverRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawIterator{contract: _ReferenceVault.contract, event: "Withdraw", logs: logs, sub: sub}, nil
}

// WatchWithdraw is a free log subscription operation binding the contract event 0xfbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db.
//
// Solidity: event Withdraw(address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdraw(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdraw, sender []common.Address, receiver []common.Address, owner []common.Address) (event.Subscription, error) {

	var senderRule []interface{}
	for _, senderItem := range sender {
		senderRule = append(senderRule, senderItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "Withdraw", senderRule, receiverRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdraw)
				if err := _ReferenceVault.contract.UnpackLog(event, "Withdraw", log); err != nil {
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

// ParseWithdraw is a log parse operation binding the contract event 0xfbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db.
//
// Solidity: event Withdraw(address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdraw(log types.Log) (*ReferenceVaultWithdraw, error) {
	event := new(ReferenceVaultWithdraw)
	if err := _ReferenceVault.contract.UnpackLog(event, "Withdraw", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalCancelledIterator is returned from FilterWithdrawalCancelled and is used to iterate over the raw logs and unpacked data for WithdrawalCancelled events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalCancelledIterator struct {
	Event *ReferenceVaultWithdrawalCancelled // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalCancelledIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalCancelled)
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
		it.Event = new(ReferenceVaultWithdrawalCancelled)
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
func (it *ReferenceVaultWithdrawalCancelledIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalCancelledIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalCancelled represents a WithdrawalCancelled event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalCancelled struct {
	RequestIndex *big.Int
	Owner        common.Address
	Shares       *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalCancelled is a free log retrieval operation binding the contract event 0x1827a0ec328915df70a21d3ac58a86f06973898dbc2eaee0aa91be7563f136eb.
//
// Solidity: event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalCancelled(opts *bind.FilterOpts, requestIndex []*big.Int, owner []common.Address) (*ReferenceVaultWithdrawalCancelledIterator, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalCancelled", requestIndexRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalCancelledIterator{contract: _ReferenceVault.contract, event: "WithdrawalCancelled", logs: logs, sub: sub}, nil
}

// WatchWithdrawalCancelled is a free log subscription operation binding the contract event 0x1827a0ec328915df70a21d3ac58a86f06973898dbc2eaee0aa91be7563f136eb.
//
// Solidity: event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalCancelled(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalCancelled, requestIndex []*big.Int, owner []common.Address) (event.Subscription, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalCancelled", requestIndexRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalCancelled)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalCancelled", log); err != nil {
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

// ParseWithdrawalCancelled is a log parse operation binding the contract event 0x1827a0ec328915df70a21d3ac58a86f06973898dbc2eaee0aa91be7563f136eb.
//
// Solidity: event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalCancelled(log types.Log) (*ReferenceVaultWithdrawalCancelled, error) {
	event := new(ReferenceVaultWithdrawalCancelled)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalCancelled", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalClaimedIterator is returned from FilterWithdrawalClaimed and is used to iterate over the raw logs and unpacked data for WithdrawalClaimed events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalClaimedIterator struct {
	Event *ReferenceVaultWithdrawalClaimed // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalClaimedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalClaimed)
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
		it.Event = new(ReferenceVaultWithdrawalClaimed)
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
func (it *ReferenceVaultWithdrawalClaimedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalClaimedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalClaimed represents a WithdrawalClaimed event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalClaimed struct {
	RequestIndex *big.Int
	Owner        common.Address
	Receiver     common.Address
	Shares       *big.Int
	Assets       *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalClaimed is a free log retrieval operation binding the contract event 0x8c6f1f453248546230edca559f3fcddbea2f6c7c33a0f7899c403d78dfb642f2.
//
// Solidity: event WithdrawalClaimed(uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalClaimed(opts *bind.FilterOpts, requestIndex []*big.Int, owner []common.Address, receiver []common.Address) (*ReferenceVaultWithdrawalClaimedIterator, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalClaimed", requestIndexRule, ownerRule, receiverRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalClaimedIterator{contract: _ReferenceVault.contract, event: "WithdrawalClaimed", logs: logs, sub: sub}, nil
}

// WatchWithdrawalClaimed is a free log subscription operation binding the contract event 0x8c6f1f453248546230edca559f3fcddbea2f6c7c33a0f7899c403d78dfb642f2.
//
// Solidity: event WithdrawalClaimed(uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalClaimed(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalClaimed, requestIndex []*big.Int, owner []common.Address, receiver []common.Address) (event.Subscription, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var receiverRule []interface{}
	for _, receiverItem := range receiver {
		receiverRule = append(receiverRule, receiverItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalClaimed", requestIndexRule, ownerRule, receiverRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalClaimed)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalClaimed", log); err != nil {
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

// ParseWithdrawalClaimed is a log parse operation binding the contract event 0x8c6f1f453248546230edca559f3fcddbea2f6c7c33a0f7899c403d78dfb642f2.
//
// Solidity: event WithdrawalClaimed(uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalClaimed(log types.Log) (*ReferenceVaultWithdrawalClaimed, error) {
	event := new(ReferenceVaultWithdrawalClaimed)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalClaimed", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalExpiredIterator is returned from FilterWithdrawalExpired and is used to iterate over the raw logs and unpacked data for WithdrawalExpired events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalExpiredIterator struct {
	Event *ReferenceVaultWithdrawalExpired // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalExpiredIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalExpired)
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
		it.Event = new(ReferenceVaultWithdrawalExpired)
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
func (it *ReferenceVaultWithdrawalExpiredIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalExpiredIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalExpired represents a WithdrawalExpired event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalExpired struct {
	RequestIndex *big.Int
	Owner        common.Address
	Shares       *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalExpired is a free log retrieval operation binding the contract event 0x5fb0e1ba0a27df5b9c0aa4e2cf04d157f0a731b6a17aa890ee8735c842bdedd4.
//
// Solidity: event WithdrawalExpired(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalExpired(opts *bind.FilterOpts, requestIndex []*big.Int, owner []common.Address) (*ReferenceVaultWithdrawalExpiredIterator, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalExpired", requestIndexRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalExpiredIterator{contract: _ReferenceVault.contract, event: "WithdrawalExpired", logs: logs, sub: sub}, nil
}

// WatchWithdrawalExpired is a free log subscription operation binding the contract event 0x5fb0e1ba0a27df5b9c0aa4e2cf04d157f0a731b6a17aa890ee8735c842bdedd4.
//
// Solidity: event WithdrawalExpired(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalExpired(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalExpired, requestIndex []*big.Int, owner []common.Address) (event.Subscription, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalExpired", requestIndexRule, ownerRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalExpired)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalExpired", log); err != nil {
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

// ParseWithdrawalExpired is a log parse operation binding the contract event 0x5fb0e1ba0a27df5b9c0aa4e2cf04d157f0a731b6a17aa890ee8735c842bdedd4.
//
// Solidity: event WithdrawalExpired(uint256 indexed requestIndex, address indexed owner, uint256 shares)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalExpired(log types.Log) (*ReferenceVaultWithdrawalExpired, error) {
	event := new(ReferenceVaultWithdrawalExpired)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalExpired", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalFundedIterator is returned from FilterWithdrawalFunded and is used to iterate over the raw logs and unpacked data for WithdrawalFunded events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalFundedIterator struct {
	Event *ReferenceVaultWithdrawalFunded // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalFundedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalFunded)
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
		it.Event = new(ReferenceVaultWithdrawalFunded)
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
func (it *ReferenceVaultWithdrawalFundedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalFundedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalFunded represents a WithdrawalFunded event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalFunded struct {
	RequestIndex *big.Int
	Owner        common.Address
	SettlementId *big.Int
	Shares       *big.Int
	Assets       *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalFunded is a free log retrieval operation binding the contract event 0x1adee656cb612f423b882c3977d9686471c63b0737226e77fc11bef721139527.
//
// Solidity: event WithdrawalFunded(uint256 indexed requestIndex, address indexed owner, uint256 indexed settlementId, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalFunded(opts *bind.FilterOpts, requestIndex []*big.Int, owner []common.Address, settlementId []*big.Int) (*ReferenceVaultWithdrawalFundedIterator, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var settlementIdRule []interface{}
	for _, settlementIdItem := range settlementId {
		settlementIdRule = append(settlementIdRule, settlementIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalFunded", requestIndexRule, ownerRule, settlementIdRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalFundedIterator{contract: _ReferenceVault.contract, event: "WithdrawalFunded", logs: logs, sub: sub}, nil
}

// WatchWithdrawalFunded is a free log subscription operation binding the contract event 0x1adee656cb612f423b882c3977d9686471c63b0737226e77fc11bef721139527.
//
// Solidity: event WithdrawalFunded(uint256 indexed requestIndex, address indexed owner, uint256 indexed settlementId, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalFunded(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalFunded, requestIndex []*big.Int, owner []common.Address, settlementId []*big.Int) (event.Subscription, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var settlementIdRule []interface{}
	for _, settlementIdItem := range settlementId {
		settlementIdRule = append(settlementIdRule, settlementIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalFunded", requestIndexRule, ownerRule, settlementIdRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalFunded)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalFunded", log); err != nil {
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

// ParseWithdrawalFunded is a log parse operation binding the contract event 0x1adee656cb612f423b882c3977d9686471c63b0737226e77fc11bef721139527.
//
// Solidity: event WithdrawalFunded(uint256 indexed requestIndex, address indexed owner, uint256 indexed settlementId, uint256 shares, uint256 assets)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalFunded(log types.Log) (*ReferenceVaultWithdrawalFunded, error) {
	event := new(ReferenceVaultWithdrawalFunded)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalFunded", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalRequestedIterator is returned from FilterWithdrawalRequested and is used to iterate over the raw logs and unpacked data for WithdrawalRequested events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalRequestedIterator struct {
	Event *ReferenceVaultWithdrawalRequested // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalRequestedIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalRequested)
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
		it.Event = new(ReferenceVaultWithdrawalRequested)
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
func (it *ReferenceVaultWithdrawalRequestedIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalRequestedIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalRequested represents a WithdrawalRequested event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalRequested struct {
	RequestIndex   *big.Int
	Owner          common.Address
	PartnerId      uint32
	Receiver       common.Address
	Shares         *big.Int
	AssetsEstimate *big.Int
	ExpiresAt      uint64
	Raw            types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalRequested is a free log retrieval operation binding the contract event 0x50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae17826094.
//
// Solidity: event WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalRequested(opts *bind.FilterOpts, requestIndex []*big.Int, owner []common.Address, partnerId []uint32) (*ReferenceVaultWithdrawalRequestedIterator, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalRequested", requestIndexRule, ownerRule, partnerIdRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalRequestedIterator{contract: _ReferenceVault.contract, event: "WithdrawalRequested", logs: logs, sub: sub}, nil
}

// WatchWithdrawalRequested is a free log subscription operation binding the contract event 0x50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae17826094.
//
// Solidity: event WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalRequested(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalRequested, requestIndex []*big.Int, owner []common.Address, partnerId []uint32) (event.Subscription, error) {

	var requestIndexRule []interface{}
	for _, requestIndexItem := range requestIndex {
		requestIndexRule = append(requestIndexRule, requestIndexItem)
	}
	var ownerRule []interface{}
	for _, ownerItem := range owner {
		ownerRule = append(ownerRule, ownerItem)
	}
	var partnerIdRule []interface{}
	for _, partnerIdItem := range partnerId {
		partnerIdRule = append(partnerIdRule, partnerIdItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalRequested", requestIndexRule, ownerRule, partnerIdRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalRequested)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalRequested", log); err != nil {
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

// ParseWithdrawalRequested is a log parse operation binding the contract event 0x50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae17826094.
//
// Solidity: event WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalRequested(log types.Log) (*ReferenceVaultWithdrawalRequested, error) {
	event := new(ReferenceVaultWithdrawalRequested)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalRequested", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}

// ReferenceVaultWithdrawalsSettledIterator is returned from FilterWithdrawalsSettled and is used to iterate over the raw logs and unpacked data for WithdrawalsSettled events raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalsSettledIterator struct {
	Event *ReferenceVaultWithdrawalsSettled // Event containing the contract specifics and raw log

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
func (it *ReferenceVaultWithdrawalsSettledIterator) Next() bool {
	// If the iterator failed, stop iterating
	if it.fail != nil {
		return false
	}
	// If the iterator completed, deliver directly whatever's available
	if it.done {
		select {
		case log := <-it.logs:
			it.Event = new(ReferenceVaultWithdrawalsSettled)
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
		it.Event = new(ReferenceVaultWithdrawalsSettled)
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
func (it *ReferenceVaultWithdrawalsSettledIterator) Error() error {
	return it.fail
}

// Close terminates the iteration process, releasing any pending underlying
// resources.
func (it *ReferenceVaultWithdrawalsSettledIterator) Close() error {
	it.sub.Unsubscribe()
	return nil
}

// ReferenceVaultWithdrawalsSettled represents a WithdrawalsSettled event raised by the ReferenceVault contract.
type ReferenceVaultWithdrawalsSettled struct {
	SettlementId *big.Int
	Funder       common.Address
	RequestCount *big.Int
	Shares       *big.Int
	Assets       *big.Int
	NavPerShare  *big.Int
	Raw          types.Log // Blockchain specific contextual infos
}

// FilterWithdrawalsSettled is a free log retrieval operation binding the contract event 0x6acaec6c4211e4110e727a52c5a35a29be43818f76977157cc5be460771a6bd6.
//
// Solidity: event WithdrawalsSettled(uint256 indexed settlementId, address indexed funder, uint256 requestCount, uint256 shares, uint256 assets, uint256 navPerShare)
func (_ReferenceVault *ReferenceVaultFilterer) FilterWithdrawalsSettled(opts *bind.FilterOpts, settlementId []*big.Int, funder []common.Address) (*ReferenceVaultWithdrawalsSettledIterator, error) {

	var settlementIdRule []interface{}
	for _, settlementIdItem := range settlementId {
		settlementIdRule = append(settlementIdRule, settlementIdItem)
	}
	var funderRule []interface{}
	for _, funderItem := range funder {
		funderRule = append(funderRule, funderItem)
	}

	logs, sub, err := _ReferenceVault.contract.FilterLogs(opts, "WithdrawalsSettled", settlementIdRule, funderRule)
	if err != nil {
		return nil, err
	}
	return &ReferenceVaultWithdrawalsSettledIterator{contract: _ReferenceVault.contract, event: "WithdrawalsSettled", logs: logs, sub: sub}, nil
}

// WatchWithdrawalsSettled is a free log subscription operation binding the contract event 0x6acaec6c4211e4110e727a52c5a35a29be43818f76977157cc5be460771a6bd6.
//
// Solidity: event WithdrawalsSettled(uint256 indexed settlementId, address indexed funder, uint256 requestCount, uint256 shares, uint256 assets, uint256 navPerShare)
func (_ReferenceVault *ReferenceVaultFilterer) WatchWithdrawalsSettled(opts *bind.WatchOpts, sink chan<- *ReferenceVaultWithdrawalsSettled, settlementId []*big.Int, funder []common.Address) (event.Subscription, error) {

	var settlementIdRule []interface{}
	for _, settlementIdItem := range settlementId {
		settlementIdRule = append(settlementIdRule, settlementIdItem)
	}
	var funderRule []interface{}
	for _, funderItem := range funder {
		funderRule = append(funderRule, funderItem)
	}

	logs, sub, err := _ReferenceVault.contract.WatchLogs(opts, "WithdrawalsSettled", settlementIdRule, funderRule)
	if err != nil {
		return nil, err
	}
	return event.NewSubscription(func(quit <-chan struct{}) error {
		defer sub.Unsubscribe()
		for {
			select {
			case log := <-logs:
				// New log arrived, parse the event and forward to the user
				event := new(ReferenceVaultWithdrawalsSettled)
				if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalsSettled", log); err != nil {
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

// ParseWithdrawalsSettled is a log parse operation binding the contract event 0x6acaec6c4211e4110e727a52c5a35a29be43818f76977157cc5be460771a6bd6.
//
// Solidity: event WithdrawalsSettled(uint256 indexed settlementId, address indexed funder, uint256 requestCount, uint256 shares, uint256 assets, uint256 navPerShare)
func (_ReferenceVault *ReferenceVaultFilterer) ParseWithdrawalsSettled(log types.Log) (*ReferenceVaultWithdrawalsSettled, error) {
	event := new(ReferenceVaultWithdrawalsSettled)
	if err := _ReferenceVault.contract.UnpackLog(event, "WithdrawalsSettled", log); err != nil {
		return nil, err
	}
	event.Raw = log
	return event, nil
}
