package partners

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/webhook"
)

// chainID of all referrals.
const chainID = 31337

// logID is the id of the log to which all referrals belong.
var logID = []byte("referrals of log")

// large makes a body about 650 bytes long: it is nearly the largest amount that counts.
var large = new(big.Int).Sub(readmodel.MaxAmount, big.NewInt(1))

// A Referral is a record and the event that must arrive because of it.
type Referral struct {
	Topic   string
	Partner uint32
	ID      uuid.UUID
	Body    []byte // exactly as it must be posted
	Value   []byte // of the record
}

// Withdrawal returns the n-th withdrawal request of a partner's user. The same arguments give the same bytes.
func Withdrawal(partner uint32, n int) (Referral, error) {
	return referralOf(chainlog.ReferralWithdrawals(chainID), event.Referral_KIND_WITHDRAWAL, partner, n,
		contracts.WithdrawalRequested{
			RequestIndex: big.NewInt(int64(n)), Owner: common.BigToAddress(big.NewInt(0xabc)), PartnerID: partner,
			Receiver: common.BigToAddress(big.NewInt(0xdef)), Shares: large, AssetsEstimate: large,
		})
}

// Deposit returns the n-th deposit of a partner's user. The same arguments give the same bytes.
func Deposit(partner uint32, n int) (Referral, error) {
	return referralOf(chainlog.ReferralDeposits(chainID), event.Referral_KIND_DEPOSIT, partner, n,
		contracts.DepositAccepted{
			DepositID: big.NewInt(int64(n) + 1), Owner: common.BigToAddress(big.NewInt(0xabc)), PartnerID: partner,
			Sender: common.BigToAddress(big.NewInt(0xdef)), Assets: large, Shares: large,
		})
}

// referralOf returns the referral of a log with this event.
func referralOf(topic string, kind event.Referral_Kind, partner uint32, n int, what contracts.Event) (Referral, error) {
	topics, data, err := contracts.Encode(what)
	if err != nil {
		return Referral{}, fmt.Errorf("encode event %d of partner %d: %w", n, partner, err)
	}
	tx := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(int64(partner)), 64), big.NewInt(int64(n)))
	log := &event.Log{
		Address: common.BigToAddress(big.NewInt(0x5fbdb)).Bytes(), Data: data, BlockNumber: 1000 + uint64(n),
		BlockHash: make([]byte, 32),
		BlockTime: 1_700_000_000 + uint64(n), TxHash: common.BigToHash(tx).Bytes(), LogIndex: 3,
	}
	for _, topic := range topics {
		log.Topics = append(log.Topics, topic.Bytes())
	}
	record := &event.Referral{ChainId: chainID, Kind: kind, PartnerId: partner, Seq: uint64(n), LogId: logID, Log: log}
	if record.Effect, err = mapping.Reference().Referral(log); err != nil {
		return Referral{}, fmt.Errorf("event %d of partner %d: %w", n, partner, err)
	}
	envelope, err := webhook.FromReferral(record)
	if err != nil {
		return Referral{}, fmt.Errorf("event %d of partner %d: %w", n, partner, err)
	}
	r := Referral{Topic: topic, Partner: partner, ID: envelope.ID}
	if r.Body, err = envelope.Body(); err != nil {
		return Referral{}, err
	}
	if r.Value, err = proto.Marshal(record); err != nil {
		return Referral{}, fmt.Errorf("encode event %d of partner %d: %w", n, partner, err)
	}
	return r, nil
}
