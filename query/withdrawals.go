package query

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/webhook"
)

type withdrawalJSON struct {
	ID              string  `json:"id"`
	VaultAddress    string  `json:"vaultAddress"`
	VaultName       string  `json:"vaultName"`
	UserAddress     string  `json:"userAddress"`
	ReceiverAddress string  `json:"receiverAddress"`
	RequestIndex    string  `json:"requestIndex"`
	Shares          string  `json:"shares"`
	AssetsEstimate  string  `json:"assetsEstimate"`
	Status          string  `json:"status"`
	Claimable       bool    `json:"claimable"`
	AssetsClaimable string  `json:"assetsClaimable"`
	AssetsClaimed   string  `json:"assetsClaimed"`
	PartnerID       *uint32 `json:"partnerId,omitempty"`
	RequestedAt     string  `json:"requestedAt"`
	ExpiresAt       *string `json:"expiresAt"`
	FundedAt        *string `json:"fundedAt"`
	ClaimedAt       *string `json:"claimedAt"`
	CancelledAt     *string `json:"cancelledAt"`
	ExpiredAt       *string `json:"expiredAt"`
	TxHash          string  `json:"txHash"`
	BlockNumber     string  `json:"blockNumber"`
	LogIndex        uint32  `json:"logIndex"`
	Timestamp       string  `json:"timestamp"`
}

// Values of the status of a withdrawal request, as request.go makes them, and
// sql/parts.sql where a list is filtered by it.
const (
	statusQueued    = "queued"
	statusClaimed   = "claimed"
	statusCancelled = "cancelled"
	statusExpired   = "expired"
)

// requestRow is the live state of a withdrawal request.
type requestRow struct {
	requestKey
	User           string   `ch:"user"`
	Receiver       string   `ch:"receiver"`
	Partner        uint32   `ch:"partner"`
	Shares         *big.Int `ch:"shares"`
	Estimate       *big.Int `ch:"estimate"`
	Expires        uint64   `ch:"expires_ts"`
	Requested      uint64   `ch:"requested"`
	RequestedAt    uint32   `ch:"requested_ts"`
	RequestedBlock uint64   `ch:"requested_block"`
	Tx             string   `ch:"tx"`
	LogIndex       uint32   `ch:"log_index"`
	Funded         uint64   `ch:"funded"`
	FundedAt       uint32   `ch:"funded_ts"`
	FundedAssets   *big.Int `ch:"funded_assets"`
	Claimed        uint64   `ch:"claimed"`
	ClaimedAt      uint32   `ch:"claimed_ts"`
	ClaimedAssets  *big.Int `ch:"claimed_assets"`
	Cancelled      uint64   `ch:"cancelled"`
	CancelledAt    uint32   `ch:"cancelled_ts"`
	Expired        uint64   `ch:"expired"`
	ExpiredAt      uint32   `ch:"expired_ts"`
	Status         string   `ch:"status"`
}

func (q *Query) listUserWithdrawals(x *exchange) (*answer, error) {
	user := x.pathAddress()
	page, vault := x.params.page(), x.params.vault()
	status := x.params.oneOf("status", "", statusQueued, statusClaimed, statusCancelled)
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	if user == (common.Address{}) { // a row that is in nobody's list says so by this user
		return x.withdrawals(p, nil, page, 0), nil
	}
	args := []param{named("user", user), vaultParam(vault)}
	var rows []requestRow
	var count int64
	if status == "" {
		rows, count, err = x.userWithdrawals(p, page, args)
	} else {
		rows, count, err = x.userWithdrawalsByStatus(p, page, args, status)
	}
	if err != nil {
		return nil, err
	}
	return x.withdrawals(p, rows, page, count), nil
}

// userRequest names a request in its user's list.
type userRequest struct {
	requestKey
	Block    uint64 `ch:"block"`
	LogIndex uint32 `ch:"log_index"`
	userEntry
}

func (r *userRequest) position(b userRequest) int {
	return cmp.Or(cmp.Compare(r.Block, b.Block), cmp.Compare(r.LogIndex, b.LogIndex))
}

// userWithdrawals is a page of all of a user's requests, and how many there are.
func (x *exchange) userWithdrawals(p *pin, page page, args []param) ([]requestRow, int64, error) {
	wanted, count, err := userPage[userRequest](x, p, sqlWithdrawals, page, args)
	if err != nil {
		return nil, 0, err
	}
	rows, err := x.newestRequests(p, wanted)
	return rows, count, err
}

// newestRequests reads the states of some requests, newest first.
func (x *exchange) newestRequests(p *pin, wanted []userRequest) ([]requestRow, error) {
	keys := make([]requestKey, len(wanted))
	for i, w := range wanted {
		keys[i] = w.requestKey
	}
	rows, err := x.requests(p, keys)
	slices.SortFunc(rows, func(a, b requestRow) int { return b.position(a) })
	return rows, err
}

// userWithdrawalsByStatus is a page of those of one status: it takes the states of
// all of them. Where they are few, these are told here.
func (x *exchange) userWithdrawalsByStatus(p *pin, page page, args []param, status string) ([]requestRow, int64, error) {
	all, few, err := fewEntries[userRequest](x, p, sqlWithdrawals, args)
	if err != nil {
		return nil, 0, err
	}
	if few {
		rows, err := x.newestRequests(p, all)
		rows = slices.DeleteFunc(rows, func(r requestRow) bool { return r.Status != status })
		return pageOf(rows, page), int64(len(rows)), err
	}
	now, err := x.now(p)
	if err != nil {
		return nil, 0, err
	}
	args = append(args, named("status", status), named("now", now))
	count, err := total(x, p, sqlByStatusCount, args...)
	if err != nil {
		return nil, 0, err
	}
	rows, err := pinned[requestRow](x, p, sqlByStatus, append(args, page.args()...)...)
	return rows, count, err
}

func (q *Query) listQueuedWithdrawals(x *exchange) (*answer, error) {
	page, vault := x.params.page(), x.params.vault()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	queue, err := x.queue(p, vault)
	if err != nil {
		return nil, err
	}
	var count int64
	for address, v := range queue.vaults {
		if vault == nil || address == *vault {
			count += v.pending
		}
	}
	rows, err := x.queuePage(p, queue, vault, page)
	if err != nil {
		return nil, err
	}
	return x.withdrawals(p, rows, page, count), nil
}

// withdrawals answers with one page of requests.
func (x *exchange) withdrawals(p *pin, rows []requestRow, page page, count int64) *answer {
	out := make([]withdrawalJSON, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.json(p))
	}
	return x.list(out, page, count)
}

func (r *requestRow) json(p *pin) withdrawalJSON {
	address, name := p.written(toAddress(r.Vault))
	user := toAddress(r.User).Hex()
	receiver := user
	if r.Receiver != r.User {
		receiver = toAddress(r.Receiver).Hex()
	}
	tx := toHash(r.Tx)
	out := withdrawalJSON{
		ID: factID(tx, r.LogIndex), VaultAddress: address, VaultName: name,
		UserAddress: user, ReceiverAddress: receiver,
		RequestIndex: strconv.FormatUint(r.Index, 10), Shares: r.Shares.String(), AssetsEstimate: r.Estimate.String(),
		Status: r.Status, Claimable: r.Status == statusQueued && r.Funded > 0,
		AssetsClaimable: "0", AssetsClaimed: r.ClaimedAssets.String(), PartnerID: partnerOrAbsent(r.Partner),
		RequestedAt: webhook.FormatTime(uint64(r.RequestedAt)), ExpiresAt: timeOrNull(r.Expires),
		FundedAt: timeIf(r.Funded > 0, r.FundedAt), ClaimedAt: timeIf(r.Claimed > 0, r.ClaimedAt),
		CancelledAt: timeIf(r.Cancelled > 0, r.CancelledAt), ExpiredAt: timeIf(r.Expired > 0, r.ExpiredAt),
		TxHash: tx, BlockNumber: strconv.FormatUint(r.RequestedBlock, 10), LogIndex: r.LogIndex,
		Timestamp: webhook.FormatTime(uint64(r.RequestedAt)),
	}
	if out.Claimable {
		out.AssetsClaimable = r.FundedAssets.String()
	}
	if r.Status == statusExpired && r.Expired == 0 { // its time is over and nobody has said so on chain
		out.ExpiredAt = out.ExpiresAt
	}
	return out
}

// timeIf writes the time of something that may not have happened.
func timeIf(happened bool, seconds uint32) *string {
	if !happened {
		return nil
	}
	s := webhook.FormatTime(uint64(seconds))
	return &s
}

type settlementJSON struct {
	VaultAddress      string     `json:"vaultAddress"`
	VaultName         string     `json:"vaultName"`
	DepositsToSweep   amountJSON `json:"depositsToSweep"`
	WithdrawalsToFund amountJSON `json:"withdrawalsToFund"`
}

type amountJSON struct {
	Count       int64  `json:"count"`
	TotalAmount string `json:"totalAmount"`
}

func (q *Query) settlementSummary(x *exchange) (*answer, error) {
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	var unswept map[common.Address]unsweptRow
	var queue *queue
	err = together(
		func() (err error) { _, unswept, err = x.unswept(p, nil); return },
		func() (err error) { queue, err = x.queue(p, nil); return },
	)
	if err != nil {
		return nil, err
	}
	out := make([]settlementJSON, 0, len(p.vaults))
	for _, v := range p.vaults {
		entry := settlementJSON{VaultAddress: v.written, VaultName: v.name, DepositsToSweep: unswept[v.address].json(), WithdrawalsToFund: amountJSON{0, "0"}}
		if w, ok := queue.vaults[v.address]; ok {
			entry.WithdrawalsToFund = amountRow{w.unfunded, w.amount.ToBig()}.json()
		}
		out = append(out, entry)
	}
	return &answer{data: out}, nil
}

func (a amountRow) json() amountJSON {
	return amountJSON{Count: a.Total, TotalAmount: a.Amount.String()}
}
