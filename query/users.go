package query

import (
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/webhook"
)

type userJSON struct {
	Address        string `json:"address"`
	FirstSeen      string `json:"firstSeen"`
	TotalDeposited string `json:"totalDeposited"`
	TotalWithdrawn string `json:"totalWithdrawn"`
}

type userWithHoldingsJSON struct {
	userJSON
	Holdings holdingsJSON `json:"holdings"`
}

type holdingsJSON struct {
	Deposits    []depositHoldingJSON    `json:"deposits"`
	Withdrawals []withdrawalHoldingJSON `json:"withdrawals"`
}

type depositHoldingJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetAmount string `json:"assetAmount"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

type withdrawalHoldingJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetsEstimate string `json:"assetsEstimate"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

type userRow struct {
	User      string   `ch:"user"`
	Deposited *big.Int `ch:"deposited"`
	Withdrawn *big.Int `ch:"withdrawn"`
	FirstSeen uint32   `ch:"first_ts"`
	Total     uint64   `ch:"total"` // how many users there are, where the question counts them
	Late      uint8    `ch:"late"`  // 1 where the row says more than was known at the pin
}

// The questions about users: by sortBy, and of a page by sortOrder too; ties go
// by address, ascending.
var (
	sqlUserBuckets, sqlMovedUsers = listQuestions("users_buckets"), listQuestions("users_moved")
	sqlUsers, sqlUsersAsOf        = pageQuestions("users"), pageQuestions("users_as_of")
	sqlUsersCameFirst             = pageQuestions("users_came_first")
)

// userOrder is what the files of these questions are filled in with.
type userOrder struct {
	Key        string // column
	List       string // of rankings
	Descending bool
}

// userOrders are the orders by sortBy.
var userOrders = map[string]userOrder{
	"firstSeen": {"first_ts", "first", false}, "totalDeposited": {"deposited", "deposited", false}, "totalWithdrawn": {"withdrawn", "withdrawn", false},
}

func listQuestions(file string) map[string]string {
	out := make(map[string]string)
	for by, order := range userOrders {
		out[by] = question(file, order)
	}
	return out
}

func pageQuestions(file string) map[[2]string]string {
	out := make(map[[2]string]string)
	for by, order := range userOrders {
		out[[2]string{by, "asc"}] = question(file, order)
		order.Descending = true
		out[[2]string{by, "desc"}] = question(file, order)
	}
	return out
}

func (q *Query) listUsers(x *exchange) (*answer, error) {
	page := x.params.page()
	order := [2]string{
		x.params.oneOf("sortBy", "firstSeen", "firstSeen", "totalDeposited", "totalWithdrawn"),
		x.params.oneOf("sortOrder", "desc", "asc", "desc"),
	}
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	read := usersNow
	if p.asOf {
		read = usersAsOf
	}
	rows, count, err := read(x, p, page, order)
	if err != nil {
		return nil, err
	}
	out := make([]userJSON, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.json())
	}
	return x.list(out, page, count), nil
}

// rankedBucket is how many users a bucket of a list holds.
type rankedBucket struct {
	Bucket uint32 `ch:"bucket"`
	Users  int32  `ch:"users"`
	Rows   uint64 `ch:"rows"` // that say so, the latest apart; 0 where that was not asked
}

// moved is the buckets of a list, in ascending order, after so many users came
// into some of them or left them (way 1), or before they did (way -1).
func moved(buckets, by []rankedBucket, way int32) []rankedBucket {
	out := make([]rankedBucket, 0, len(buckets)+len(by))
	for rest := buckets; len(rest)+len(by) > 0; {
		next := rankedBucket{Bucket: math.MaxUint32}
		if len(rest) > 0 {
			next.Bucket = rest[0].Bucket
		}
		if len(by) > 0 {
			next.Bucket = min(next.Bucket, by[0].Bucket)
		}
		if len(rest) > 0 && rest[0].Bucket == next.Bucket {
			next, rest = rest[0], rest[1:]
		}
		if len(by) > 0 && by[0].Bucket == next.Bucket {
			next.Users, by = next.Users+way*by[0].Users, by[1:]
		}
		if next.Users > 0 {
			out = append(out, next)
		}
	}
	return out
}

// placesSpan is how many seqs share a row of the projection totals of rankings.
const placesSpan = 1 << 20

// usersNow is a page of the list at the pin's seq.
func usersNow(x *exchange, p *pin, page page, order [2]string) ([]userRow, int64, error) {
	buckets, err := x.places(p, order[0])
	if err != nil {
		return nil, 0, err
	}
	return usersOf(x, p, page, order, buckets)
}

// usersOf finds the buckets of the list that hold the page by adding up those
// before, and reads only these: how deep the page lies costs nothing.
func usersOf(x *exchange, p *pin, page page, order [2]string, buckets []rankedBucket) ([]userRow, int64, error) {
	if order[1] == "desc" {
		buckets = descend(buckets)
	}
	within, skip, rows, count := stretch(buckets, page)
	if len(within) == 0 {
		return nil, count, nil
	}
	if order[0] == "firstSeen" && p.head != nil && rows >= x.sizes.many && skip <= mostSkipped {
		if users, ok, err := cameFirst(x, p, page, order, within, skip); ok || err != nil {
			return users, count, err
		}
	}
	users, err := pinned[userRow](x, p, sqlUsers[order], named("buckets", within), named("limit", uint64(page.size)), named("offset", skip))
	return users, count, err
}

// mostSkipped is how many users of a page's first bucket are read for nothing.
const mostSkipped = 2000

// cameFirst is a page of who came first out of the engine's totals, which are not
// those of the pin (false) where rows later than that are in them.
func cameFirst(x *exchange, p *pin, page page, order [2]string, within []uint32, skip uint64) ([]userRow, bool, error) {
	rows, err := pinned[userRow](x, p, sqlUsersCameFirst[order], named("buckets", within), named("limit", skip+uint64(page.size)))
	if err != nil || len(rows) > 0 && rows[0].Late != 0 {
		return nil, false, err
	}
	return rows[min(skip, uint64(len(rows))):], true, nil
}

// places reads the buckets of a list: at the newest block what changed since
// they were read for an earlier one.
func (x *exchange) places(p *pin, by string) ([]rankedBucket, error) {
	return shared(x, p, func(h *head) *lazy[[]rankedBucket] { return h.lists[by] }, func(was *earlier[[]rankedBucket]) ([]rankedBucket, error) {
		if was != nil {
			if more, ok := x.snapshot.news.crossings(was.seq, by); ok {
				return moved(was.value, more, 1), nil
			}
			more, err := pinned[rankedBucket](x, p, sqlMovedUsers[by], named("from", uint64(0)), named("to", uint64(math.MaxUint64)), named("since", was.seq))
			return moved(was.value, more, 1), err
		}
		return x.readPlaces(p, by)
	})
}

// readPlaces reads the buckets of a list out of the engine's totals up to a
// border near the pin's seq that all tables have reached, and the logs between.
func (x *exchange) readPlaces(p *pin, by string) ([]rankedBucket, error) {
	spans, err := x.spans()
	if err != nil {
		return nil, err
	}
	near := nearest(p.seq, placesSpan)
	if near.edge*placesSpan > x.snapshot.seq {
		near = below(p.seq, placesSpan)
	}
	low, high := spans.blocks(near.from, near.to)
	return pinned[rankedBucket](x, p, sqlUserBuckets[by], named("edge", near.edge), named("way", near.way),
		named("from", near.from), named("to", near.to), named("low", low), named("high", high))
}

// pastPlaces are the buckets of the lists in the past, by sortBy.
var pastPlaces = func() map[string]*history[[]rankedBucket] {
	out := make(map[string]*history[[]rankedBucket])
	for by := range userOrders {
		out[by] = &history[[]rankedBucket]{
			name: by, ordered: true,
			read: func(x *exchange, p *pin) ([]rankedBucket, error) { return x.readPlaces(p, by) },
			move: func(x *exchange, p *pin, was []rankedBucket, between border) ([]rankedBucket, bool, error) {
				by, err := pinned[rankedBucket](x, p, sqlMovedUsers[by], named("from", between.from), named("to", between.to), named("since", uint64(0)))
				return moved(was, by, int32(between.way)), true, err
			},
			pack: packPlaces, unpack: unpackPlaces,
		}
	}
	return out
}()

// descend brings the buckets of an ascending list into the order of the
// descending one, in which users with equal keys still go by address.
func descend(buckets []rankedBucket) []rankedBucket {
	buckets = slices.Clone(buckets)
	keys := slices.IndexFunc(buckets, func(b rankedBucket) bool { return b.Bucket >= readmodel.ZeroBuckets })
	if keys < 0 {
		return buckets
	}
	slices.Reverse(buckets)
	slices.Reverse(buckets[len(buckets)-keys:])
	return buckets
}

// stretch gives the buckets that a page lies in, how many users they hold
// before it, how many rows they have, and how many users there are.
func stretch(buckets []rankedBucket, page page) (within []uint32, skip, rows uint64, count int64) {
	from, before := int64(page.offset()), int64(0)
	to := from + int64(page.size)
	for _, b := range buckets {
		if before < to && from < before+int64(b.Users) {
			if len(within) == 0 {
				skip = uint64(from - before)
			}
			within, rows = append(within, b.Bucket), rows+b.Rows
		}
		before += int64(b.Users)
	}
	return within, skip, rows, before
}

// usersAsOf gives the users as of a block. The places in rankings are those of
// the log's order, which is the chain's too unless a vault was added, or blocks
// were taken back, between the block and now: then all flows are summed.
func usersAsOf(x *exchange, p *pin, page page, order [2]string) ([]userRow, int64, error) {
	var then *pin
	var places []rankedBucket
	var prefix, known bool
	err := together(
		func() (err error) { then, prefix, err = x.before(p); return },
		func() (err error) { places, known, err = pastPlaces[order[0]].at(x, p); return },
	)
	if err == nil && prefix && !known {
		places, err = x.readPlaces(then, order[0])
	}
	if err != nil {
		return nil, 0, err
	}
	if prefix {
		return usersOf(x, then, page, order, places)
	}
	rows, err := pinned[userRow](x, p, sqlUsersAsOf[order], page.args()...)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) > 0 {
		return rows, int64(rows[0].Total), nil
	}
	count, err := total(x, p, sqlUsersAsOfCnt)
	return nil, count, err
}

func (r *userRow) json() userJSON {
	return userJSON{
		Address: toAddress(r.User).Hex(), FirstSeen: webhook.FormatTime(uint64(r.FirstSeen)),
		TotalDeposited: r.Deposited.String(), TotalWithdrawn: r.Withdrawn.String(),
	}
}

// holdingRow is what one user did in one vault.
type holdingRow struct {
	Vault     string   `ch:"vault"`
	Live      int64    `ch:"live"` // 1 while the user has a deposit or request there
	FirstSeen int64    `ch:"first_ts"`
	Deposits  int64    `ch:"deposits"`
	Deposited *big.Int `ch:"deposited"`
	Requests  int64    `ch:"requests"`
	Estimated *big.Int `ch:"estimated"`
	Withdrawn *big.Int `ch:"withdrawn"`
}

func (q *Query) getUser(x *exchange) (*answer, error) {
	address := x.pathAddress()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	rows, err := x.holdings(p, address)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(r holdingRow) bool { return r.Live > 0 }) {
		return nil, notFound("There is no such user.")
	}
	return &answer{data: foldUser(address, rows, p)}, nil
}

// holdings are what a user did, by vault.
func (x *exchange) holdings(p *pin, address common.Address) ([]holdingRow, error) {
	type row struct {
		Vault     string   `ch:"vault"`
		Live      int8     `ch:"live"`
		FirstSeen int64    `ch:"first_ts"`
		Deposits  int8     `ch:"deposits"`
		Deposited *big.Int `ch:"deposited"`
		Requests  int8     `ch:"requests"`
		Estimated *big.Int `ch:"estimated"`
		Withdrawn *big.Int `ch:"withdrawn"`
	}
	user := named("user", address)
	logs, err := pinned[row](x, p, sqlUserLogs, user, named("few", uint64(x.sizes.few+1)))
	if err != nil {
		return nil, err
	}
	if len(logs) > x.sizes.few {
		return pinned[holdingRow](x, p, sqlUser, user)
	}
	var out []holdingRow
	for _, l := range logs {
		i := slices.IndexFunc(out, func(h holdingRow) bool { return h.Vault == l.Vault })
		if i < 0 {
			i = len(out)
			out = append(out, holdingRow{Vault: l.Vault, Deposited: new(big.Int), Estimated: new(big.Int), Withdrawn: new(big.Int)})
		}
		h := &out[i]
		h.Live, h.FirstSeen, h.Deposits, h.Requests = h.Live+int64(l.Live), h.FirstSeen+l.FirstSeen, h.Deposits+int64(l.Deposits), h.Requests+int64(l.Requests)
		h.Deposited.Add(h.Deposited, l.Deposited)
		h.Estimated.Add(h.Estimated, l.Estimated)
		h.Withdrawn.Add(h.Withdrawn, l.Withdrawn)
	}
	return out, nil
}

// foldUser adds up what a user did over the vaults.
func foldUser(address common.Address, rows []holdingRow, p *pin) userWithHoldingsJSON {
	out := userWithHoldingsJSON{Holdings: holdingsJSON{Deposits: []depositHoldingJSON{}, Withdrawals: []withdrawalHoldingJSON{}}}
	deposited, withdrawn, first := new(big.Int), new(big.Int), int64(math.MaxInt64)
	slices.SortFunc(rows, func(a, b holdingRow) int { return p.rank(toAddress(a.Vault)) - p.rank(toAddress(b.Vault)) })
	for _, r := range rows {
		vault, _ := p.written(toAddress(r.Vault))
		deposited.Add(deposited, r.Deposited)
		withdrawn.Add(withdrawn, r.Withdrawn)
		if r.Live > 0 {
			first = min(first, r.FirstSeen)
		}
		if r.Deposits > 0 {
			h := depositHoldingJSON{VaultAddress: vault, Count: r.Deposits}
			h.Sum.AssetAmount = r.Deposited.String()
			out.Holdings.Deposits = append(out.Holdings.Deposits, h)
		}
		if r.Requests > 0 {
			h := withdrawalHoldingJSON{VaultAddress: vault, Count: r.Requests}
			h.Sum.AssetsEstimate = r.Estimated.String()
			out.Holdings.Withdrawals = append(out.Holdings.Withdrawals, h)
		}
	}
	out.userJSON = userJSON{
		Address: address.Hex(), FirstSeen: webhook.FormatTime(uint64(first)),
		TotalDeposited: deposited.String(), TotalWithdrawn: withdrawn.String(),
	}
	return out
}

// rank is the place of a vault in the list of vaults.
func (p *pin) rank(address common.Address) int {
	return slices.IndexFunc(p.vaults, func(v vault) bool { return v.address == address })
}
