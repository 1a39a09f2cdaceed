// Package webhook is the contract with partners: the envelope that a delivery carries, its
// deterministic id, and the signature that proves its sender.
//
// Everything here is a pure function of the event, so an event has the same id and the same
// body bytes in every process and every replay. Only the timestamp and the signature differ
// between attempts.
package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Event types.
const (
	DepositReferral    = "deposit.referral"
	WithdrawalReferral = "withdrawal.referral"
	Test               = "webhook.test"
)

// Version is the version of the envelope.
const Version = 1

// Headers of a delivery.
const (
	HeaderEventID   = "X-Service-Event-Id"
	HeaderEventType = "X-Service-Event-Type"
	HeaderTimestamp = "X-Service-Timestamp"
	HeaderSignature = "X-Service-Signature"

	// HeaderSequence numbers a partner's events from 1 without gaps, in the order of the pull
	// stream; a test event has none. Attempts may overtake each other: a number that is still
	// missing after the retries is a lost event.
	HeaderSequence = "X-Service-Sequence"
	// HeaderSignatureNext is present during a rotation: the signature with the new secret, in
	// addition to the one with the old secret.
	HeaderSignatureNext = "X-Service-Signature-Next"
)

// Tolerance is how far the timestamp of a delivery may be from the receiver's clock.
const Tolerance = 300 * time.Second

// timeLayout is ISO 8601 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Namespace is the namespace of event ids: the UUIDv5 of https://navlog.dev/event in the URL
// namespace. It is documented, so that a partner can recompute an id.
var Namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://navlog.dev/event"))

// Envelope is the JSON body of a delivery.
type Envelope struct {
	ID        uuid.UUID `json:"id"`
	Version   int       `json:"version"`
	Type      string    `json:"type"`
	CreatedAt string    `json:"createdAt"`
	PartnerID uint32    `json:"partnerId"`
	Data      any       `json:"data"`

	// Quarantined is why the read models do not count the event, so that its partner is not
	// notified of it either; empty if they count it.
	Quarantined string `json:"-"`
}

// DepositData is the data of deposit.referral; amounts in native units. Shares are left out if the log does not have
// them.
type DepositData struct {
	VaultAddress string `json:"vaultAddress"`
	UserAddress  string `json:"userAddress"`
	Assets       string `json:"assets"`
	Shares       string `json:"shares,omitempty"`
	TxHash       string `json:"txHash"`
	BlockNumber  string `json:"blockNumber"`
	LogIndex     uint32 `json:"logIndex"`
	Timestamp    string `json:"timestamp"`
}

// WithdrawalData is the data of withdrawal.referral; amounts in native units. The estimate is left out if the log does
// not have it.
type WithdrawalData struct {
	VaultAddress   string `json:"vaultAddress"`
	UserAddress    string `json:"userAddress"`
	Shares         string `json:"shares"`
	AssetsEstimate string `json:"assetsEstimate,omitempty"`
	RequestIndex   string `json:"requestIndex"`
	TxHash         string `json:"txHash"`
	BlockNumber    string `json:"blockNumber"`
	LogIndex       uint32 `json:"logIndex"`
	Timestamp      string `json:"timestamp"`
}

// EventID returns the UUIDv5 of <chainId>:<txHash>:<logIndex>:<type>:<partnerId> in
// Namespace, with the hash in lower case.
func EventID(chainID uint64, txHash common.Hash, logIndex uint32, eventType string, partnerID uint32) uuid.UUID {
	name := fmt.Sprintf("%d:%s:%d:%s:%d", chainID, strings.ToLower(txHash.Hex()), logIndex, eventType, partnerID)
	return uuid.NewSHA1(Namespace, []byte(name))
}

// TypeOf returns the type of the event about an effect that names a partner; empty for another kind of effect.
func TypeOf(effect *event.Effect) string {
	switch effect.GetKind() {
	case event.Effect_KIND_DEPOSIT:
		return DepositReferral
	case event.Effect_KIND_REQUESTED:
		return WithdrawalReferral
	}
	return ""
}

// FromReferral returns the envelope of a referral, from its effect. An older record without an effect gets the effect
// that the reference contracts give its log. The error names the contradiction in the record; such a record can never
// become a delivery.
func FromReferral(r *event.Referral) (*Envelope, error) {
	log, effect := r.GetLog(), r.GetEffect()
	if log == nil || len(log.GetAddress()) != 20 || len(log.GetTxHash()) != 32 {
		return nil, errors.New("the referral has no complete log")
	}
	if effect == nil {
		var err error
		if effect, err = mapping.Reference().Referral(log); err != nil {
			return nil, fmt.Errorf("the referral's log cannot be decoded: %w", err)
		}
		if effect == nil {
			return nil, errors.New("the referral's log is neither a deposit nor a withdrawal request that names a partner")
		}
	}
	if len(effect.GetOwner()) != 20 {
		return nil, fmt.Errorf("the owner of the referral has %d bytes, want 20", len(effect.GetOwner()))
	}
	for _, number := range [][]byte{effect.GetKey(), effect.GetAssets(), effect.GetShares()} {
		if len(number) > 32 {
			return nil, fmt.Errorf("a number of the referral has %d bytes, want at most 32", len(number))
		}
	}
	partner := effect.GetPartnerId()
	if partner == 0 || partner != r.GetPartnerId() {
		return nil, fmt.Errorf("the referral names partner %d, but its log partner %d", r.GetPartnerId(), partner)
	}
	at := FormatTime(log.GetBlockTime())
	vault, tx := mapping.VaultOf(log).Hex(), common.BytesToHash(log.GetTxHash())
	owner, block := common.BytesToAddress(effect.GetOwner()).Hex(), strconv.FormatUint(log.GetBlockNumber(), 10)
	assets, shares := decimal(effect.GetAssets()), decimal(effect.GetShares())
	if effect.GetNoAssets() {
		assets = ""
	}
	if effect.GetNoShares() {
		shares = ""
	}
	envelope := &Envelope{Version: Version, Type: TypeOf(effect), CreatedAt: at, PartnerID: partner,
		Quarantined: effect.GetQuarantined()}
	switch effect.GetKind() {
	case event.Effect_KIND_DEPOSIT:
		envelope.Data = DepositData{
			VaultAddress: vault, UserAddress: owner, Assets: assets, Shares: shares,
			TxHash: tx.Hex(), BlockNumber: block, LogIndex: log.GetLogIndex(), Timestamp: at,
		}
	case event.Effect_KIND_REQUESTED:
		envelope.Data = WithdrawalData{
			VaultAddress: vault, UserAddress: owner, Shares: shares, AssetsEstimate: assets,
			RequestIndex: decimal(effect.GetKey()), TxHash: tx.Hex(), BlockNumber: block,
			LogIndex: log.GetLogIndex(), Timestamp: at,
		}
	default:
		return nil, fmt.Errorf(
			"the referral has the effect %s, which is neither a deposit nor a withdrawal request", effect.GetKind(),
		)
	}
	envelope.ID = EventID(r.GetChainId(), tx, log.GetLogIndex(), envelope.Type, partner)
	return envelope, nil
}

// decimal formats a number of an effect.
func decimal(number []byte) string { return new(big.Int).SetBytes(number).String() }

// Body returns the bytes that are stored, signed and sent.
func (e *Envelope) Body() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Sign returns the value of X-Service-Signature: sha256= and the hex HMAC-SHA256 of
// "<timestamp>.<body>". timestamp is in Unix seconds, the value of X-Service-Timestamp. The
// key is the whole secret, including its prefix.
func Sign(secret string, timestamp int64, body []byte) string {
	return "sha256=" + hex.EncodeToString(mac(secret, strconv.FormatInt(timestamp, 10), body))
}

// Verify checks the two headers and the raw body as a receiver should. It compares in
// constant time and rejects timestamps further than Tolerance from now. No other header
// is signed: the id and the type of the event are in the body.
func Verify(secret, timestamp, signature string, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a number of seconds", HeaderTimestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("%s is %s away from the clock: the limit is %s", HeaderTimestamp, age.Round(time.Second), Tolerance)
	}
	sum, ok := strings.CutPrefix(signature, "sha256=")
	got, err := hex.DecodeString(sum)
	if !ok || err != nil || !hmac.Equal(got, mac(secret, timestamp, body)) {
		return fmt.Errorf("%s does not match the body", HeaderSignature)
	}
	return nil
}

func mac(secret, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}

// FormatTime formats Unix seconds as ISO 8601 in UTC with milliseconds. Seconds after the year
// 9999 cannot be formatted and become its last second.
func FormatTime(seconds uint64) string {
	const last = 253402300799 // 9999-12-31T23:59:59Z
	return time.Unix(int64(min(seconds, last)), 0).UTC().Format(timeLayout)
}
