package contracts

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/common"
)

// Kind names an event of a reference vault.
type Kind uint8

// The events of a reference vault that have an effect. KindUnknown is every other log.
const (
	KindUnknown Kind = iota
	KindDepositAccepted
	KindWithdrawalRequested
	KindWithdrawalFunded
	KindWithdrawalClaimed
	KindWithdrawalCancelled
	KindWithdrawalExpired
	KindNavUpdated
	KindDepositsSwept
	KindWithdrawalsSettled
	kindCount
)

// events has an event of each kind. An event's type has the Solidity name, and its fields are the arguments in order.
var events = [kindCount]Event{
	KindDepositAccepted: DepositAccepted{}, KindWithdrawalRequested: WithdrawalRequested{},
	KindWithdrawalFunded: WithdrawalFunded{}, KindWithdrawalClaimed: WithdrawalClaimed{},
	KindWithdrawalCancelled: WithdrawalCancelled{}, KindWithdrawalExpired: WithdrawalExpired{},
	KindNavUpdated: NavUpdated{}, KindDepositsSwept: DepositsSwept{}, KindWithdrawalsSettled: WithdrawalsSettled{},
}

// Zero returns the event of a kind with the zero values of its fields; nil for KindUnknown and numbers of no
// kind.
func (k Kind) Zero() Event {
	if k >= kindCount {
		return nil
	}
	return events[k]
}

// String returns the Solidity event name, and "Unknown" for KindUnknown.
func (k Kind) String() string {
	switch {
	case k >= kindCount:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	case k == KindUnknown:
		return "Unknown"
	}
	return reflect.TypeOf(k.Zero()).Name()
}

// Signature returns the Solidity signature whose Keccak-256 hash is the first topic, such as
// "WithdrawalExpired(uint256,address,uint256)". It is empty for KindUnknown.
func (k Kind) Signature() string { return VaultABI().Events[k.String()].Sig }

// Topic returns the first topic of every log of this kind, and the zero hash for KindUnknown.
func (k Kind) Topic() common.Hash { return VaultABI().Events[k.String()].ID }

// Kinds lists all kinds but KindUnknown, in the order of their constants.
func Kinds() []Kind {
	all := make([]Kind, 0, kindCount-1)
	for k := KindUnknown + 1; k < kindCount; k++ {
		all = append(all, k)
	}
	return all
}

// KindOf returns the kind of a log by its first topic, without checking the rest of the log.
func KindOf(topic common.Hash) Kind {
	for k := KindUnknown + 1; k < kindCount; k++ {
		if k.Topic() == topic {
			return k
		}
	}
	return KindUnknown
}

// Event is one fact about a vault: one of the structs below, by value.
//
// Every *big.Int is an unsigned 256-bit integer, never nil. Assets and shares are in native units. Times are Unix
// seconds.
type Event interface {
	Kind() Kind
}

// DepositAccepted is a deposit: assets came in, and shares were minted to the owner.
type DepositAccepted struct {
	DepositID *big.Int // counts the vault's deposits from 1
	Owner     common.Address
	PartnerID uint32         // 0 = not attributed
	Sender    common.Address // who paid: the router for a deposit through a router
	Assets    *big.Int
	Shares    *big.Int
}

// WithdrawalRequested is a request that joined the queue; its shares are in escrow.
type WithdrawalRequested struct {
	RequestIndex   *big.Int // counts the vault's requests from 0
	Owner          common.Address
	PartnerID      uint32         // 0 = not attributed
	Receiver       common.Address // who is paid
	Shares         *big.Int
	AssetsEstimate *big.Int // value of the shares at the time of the request
	ExpiresAt      uint64   // 0 = never
}

// WithdrawalFunded makes a request claimable, and fixes its assets.
type WithdrawalFunded struct {
	RequestIndex *big.Int
	Owner        common.Address
	SettlementID *big.Int
	Shares       *big.Int
	Assets       *big.Int // final
}

// WithdrawalClaimed is the payment of a funded request.
type WithdrawalClaimed struct {
	RequestIndex *big.Int
	Owner        common.Address
	Receiver     common.Address
	Shares       *big.Int
	Assets       *big.Int
}

// WithdrawalCancelled is an unfunded request that its owner cancelled.
type WithdrawalCancelled struct {
	RequestIndex *big.Int
	Owner        common.Address
	Shares       *big.Int
}

// WithdrawalExpired is an unfunded request that was closed after its expiry.
type WithdrawalExpired struct {
	RequestIndex *big.Int
	Owner        common.Address
	Shares       *big.Int
}

// NavUpdated is a new valuation of the vault.
type NavUpdated struct {
	NavID       *big.Int
	Updater     common.Address
	NavPerShare *big.Int // assets per share, 18 decimals: 1.0 = 10^18
	TotalAssets *big.Int
	TotalSupply *big.Int
}

// DepositsSwept moves deposits FromDepositID to ToDepositID, both included, to the custodian.
type DepositsSwept struct {
	SweepID       *big.Int
	Custodian     common.Address
	FromDepositID *big.Int
	ToDepositID   *big.Int
	Assets        *big.Int // sum over the range
}

// WithdrawalsSettled closes a settlement; it follows one WithdrawalFunded for each of its requests.
type WithdrawalsSettled struct {
	SettlementID *big.Int
	Funder       common.Address
	RequestCount *big.Int
	Shares       *big.Int
	Assets       *big.Int
	NavPerShare  *big.Int // 18 decimals: 1.0 = 10^18
}

func (DepositAccepted) Kind() Kind     { return KindDepositAccepted }
func (WithdrawalRequested) Kind() Kind { return KindWithdrawalRequested }
func (WithdrawalFunded) Kind() Kind    { return KindWithdrawalFunded }
func (WithdrawalClaimed) Kind() Kind   { return KindWithdrawalClaimed }
func (WithdrawalCancelled) Kind() Kind { return KindWithdrawalCancelled }
func (WithdrawalExpired) Kind() Kind   { return KindWithdrawalExpired }
func (NavUpdated) Kind() Kind          { return KindNavUpdated }
func (DepositsSwept) Kind() Kind       { return KindDepositsSwept }
func (WithdrawalsSettled) Kind() Kind  { return KindWithdrawalsSettled }
