package projections

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// The rows of a batch, one type per table of schemas/readmodel. values gives
// the columns in the order of columns below; writer is added by the insert. The
// numbers a row points to are never changed afterwards.

var columns = map[string]string{
	"records":  "seq, row, sign, retracts, writer, kind, event, boundary, quarantined, block, hash, ts, address, tx, log_index, payload",
	"deposits": "seq, row, sign, retracts, writer, vault, deposit_id, user, sender, partner, assets, shares, partner_user, block, ts, tx, log_index",
	"flows":    "seq, row, sign, writer, vault, user, deposits, deposited, requests, estimated, withdrawn, vault_user, first_ts, block",
	"users":    "seq, row, sign, writer, user, since, deposited, withdrawn, first_ts",
	"requests": "seq, row, sign, writer, vault, request_index, since, user, receiver, partner, shares, estimate, expires_ts, requested, requested_ts, requested_block, tx, log_index, funded, funded_ts, funded_assets, claimed, claimed_ts, claimed_assets, cancelled, cancelled_ts, expired, expired_ts, block",
	"navs":     "seq, row, sign, retracts, writer, vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index",
	"sweeps":   "seq, row, sign, retracts, writer, vault, from_id, to_id, assets, block, ts, tx, log_index",
}

// progressRow is the row number of a row that says nothing but its seq.
const progressRow = 255

// id is what every row begins with; (seq, row) is unique in a table.
type id struct {
	seq  uint64
	row  uint8
	sign int8
}

func (i id) at() uint64 { return i.seq }

type recordRow struct {
	id
	retracts              uint64
	kind, event           string
	boundary, quarantined bool
	log                   logged
	hash                  common.Hash
	payload               []byte
}

func (r *recordRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, r.retracts, writer, r.kind, r.event, r.boundary, r.quarantined,
		r.log.block, r.hash[:], r.log.ts, r.log.vault[:], r.log.tx[:], r.log.index, r.payload}
}

type depositRow struct {
	id
	retracts       uint64
	log            logged
	depositID      uint64
	user, sender   common.Address
	partner        uint32
	assets, shares *big.Int
	partnerUser    int8
}

func (r *depositRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, r.retracts, writer, r.log.vault[:], r.depositID, r.user[:], r.sender[:], r.partner,
		r.assets, r.shares, r.partnerUser, r.log.block, r.log.ts, r.log.tx[:], r.log.index}
}

type flowRow struct {
	id
	vault, user                     common.Address
	deposits, requests              int8
	deposited, estimated, withdrawn *big.Int // nil: 0
	vaultUser                       int8
	firstTs                         int64
	block                           uint64
}

func (r *flowRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, writer, r.vault[:], r.user[:], r.deposits, r.deposited, r.requests, r.estimated, r.withdrawn,
		r.vaultUser, r.firstTs, r.block}
}

type userRow struct {
	id
	user  common.Address
	since uint64
	totals
}

func (r *userRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, writer, r.user[:], r.since, r.deposited, r.withdrawn, r.first}
}

type requestRow struct {
	id
	requestKey
	request
	block uint64
}

func (r *requestRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, writer, r.vault[:], r.index, r.since, r.user[:], r.receiver[:], r.partner,
		r.shares, r.estimate, r.expires, r.requested.count, r.requested.ts, r.requestedBlock, r.tx[:], r.logIndex,
		r.funded.count, r.funded.ts, r.fundedAssets, r.claimed.count, r.claimed.ts, r.claimedAssets,
		r.cancelled.count, r.cancelled.ts, r.expired.count, r.expired.ts, r.block}
}

type navRow struct {
	id
	retracts                              uint64
	log                                   logged
	navPerShare, totalAssets, totalSupply *big.Int
}

func (r *navRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, r.retracts, writer, r.log.vault[:], r.navPerShare, r.totalAssets, r.totalSupply,
		r.log.block, r.log.ts, r.log.tx[:], r.log.index}
}

type sweepRow struct {
	id
	retracts uint64
	log      logged
	from, to uint64
	assets   *big.Int
}

func (r *sweepRow) values(writer uint64) []any {
	return []any{r.seq, r.row, r.sign, r.retracts, writer, r.log.vault[:], r.from, r.to, r.assets,
		r.log.block, r.log.ts, r.log.tx[:], r.log.index}
}

// rows of one table, in the order of seq.
type rows interface {
	len() int
	seq(i int) uint64
	values(i int, writer uint64) []any
}

type row[R any] interface {
	*R
	at() uint64
	values(writer uint64) []any
}

type list[R any, P row[R]] []R

func (l list[R, P]) len() int                          { return len(l) }
func (l list[R, P]) seq(i int) uint64                  { return P(&l[i]).at() }
func (l list[R, P]) values(i int, writer uint64) []any { return P(&l[i]).values(writer) }

// output is what a batch adds to each table.
type output struct {
	records  list[recordRow, *recordRow]
	deposits list[depositRow, *depositRow]
	flows    list[flowRow, *flowRow]
	users    list[userRow, *userRow]
	requests list[requestRow, *requestRow]
	navs     list[navRow, *navRow]
	sweeps   list[sweepRow, *sweepRow]
}

func (o *output) table(name string) rows {
	switch name {
	case "records":
		return o.records
	case "deposits":
		return o.deposits
	case "flows":
		return o.flows
	case "users":
		return o.users
	case "requests":
		return o.requests
	case "navs":
		return o.navs
	case "sweeps":
		return o.sweeps
	}
	panic("no table " + name) // readmodel.Tables and this function go together; a test holds them so
}

// progress gives every table a row with the last seq of the batch, so that a
// quiet table is never mistaken for a late one.
func (o *output) progress(last uint64) {
	p := id{seq: last, row: progressRow}
	missing := func(table string) bool {
		r := o.table(table)
		return r.len() == 0 || r.seq(r.len()-1) != last
	}
	for _, table := range readmodel.Tables {
		if !missing(table) {
			continue
		}
		switch table {
		case "deposits":
			o.deposits = append(o.deposits, depositRow{id: p})
		case "flows":
			o.flows = append(o.flows, flowRow{id: p})
		case "users":
			o.users = append(o.users, userRow{id: p})
		case "requests":
			o.requests = append(o.requests, requestRow{id: p})
		case "navs":
			o.navs = append(o.navs, navRow{id: p})
		case "sweeps":
			o.sweeps = append(o.sweeps, sweepRow{id: p})
		}
	}
}
