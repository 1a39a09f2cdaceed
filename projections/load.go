package projections

import (
	"context"
	"embed"
	"fmt"
	"math/big"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

//go:embed sql/*.sql
var questions embed.FS

// question reads an SQL file for a generation. A database name is no value and
// cannot be a server-side parameter; it is made of a checked prefix and a number.
func question(name, database string) string {
	b, err := questions.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return strings.ReplaceAll(string(b), "{database}", database)
}

// loader reads state from a generation's own rows, as of seq.
type loader struct {
	conn     driver.Conn
	database string
	seq      uint64
}

// load brings what exists of the keys of facts into the state.
func (l loader) load(ctx context.Context, s *state, facts []fact) error {
	s.batch++
	if s.complete {
		return nil
	}
	users, requests, partners := missing(s, facts)
	if err := l.users(ctx, s, users); err != nil {
		return fmt.Errorf("load users from %s: %w", l.database, err)
	}
	if err := l.requests(ctx, s, requests); err != nil {
		return fmt.Errorf("load requests from %s: %w", l.database, err)
	}
	if err := l.partners(ctx, s, partners); err != nil {
		return fmt.Errorf("load users of partners from %s: %w", l.database, err)
	}
	return nil
}

// missing makes an empty entry for every key of facts that the state lacks, and
// lists those keys.
func missing(s *state, facts []fact) (users []common.Address, requests []requestKey, partners []partnerKey) {
	user := func(a common.Address) {
		if s.users[a] == nil {
			s.user(a)
			users = append(users, a)
		}
	}
	request := func(x *fact, index *big.Int) {
		k := requestKey{x.log.vault, index.Uint64()}
		if s.requests[k] == nil {
			s.request(k)
			requests = append(requests, k)
		}
	}
	for i := range facts {
		switch e := facts[i].event.(type) {
		case contracts.DepositAccepted:
			user(e.Owner)
			k := partnerKey{e.PartnerID, e.Owner}
			if e.PartnerID != 0 && s.partners[k] == nil {
				s.partner(k)
				partners = append(partners, k)
			}
		case contracts.WithdrawalRequested:
			user(e.Owner)
			request(&facts[i], e.RequestIndex)
		case contracts.WithdrawalClaimed:
			user(e.Owner)
			request(&facts[i], e.RequestIndex)
		case contracts.WithdrawalFunded:
			request(&facts[i], e.RequestIndex)
		case contracts.WithdrawalCancelled:
			request(&facts[i], e.RequestIndex)
		case contracts.WithdrawalExpired:
			request(&facts[i], e.RequestIndex)
		}
	}
	return users, requests, partners
}

// ask runs a question about the keys in wanted and gives each row to scan.
func (l loader) ask(ctx context.Context, name string, wanted *ext.Table, scan func(driver.Rows) error) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithExternalTable(wanted),
		clickhouse.WithParameters(clickhouse.Parameters{"seq": fmt.Sprint(l.seq)}))
	rows, err := l.conn.Query(ctx, question(name, l.database))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l loader) users(ctx context.Context, s *state, keys []common.Address) error {
	if len(keys) == 0 {
		return nil
	}
	wanted := func() (*ext.Table, error) {
		t, err := ext.NewTable("wanted", ext.Column("user", "FixedString(20)"))
		for i := 0; err == nil && i < len(keys); i++ {
			err = t.Append(keys[i][:])
		}
		return t, err
	}
	table, err := wanted()
	if err != nil {
		return err
	}
	var owner, vault []byte
	err = l.ask(ctx, "load_flows", table, func(rows driver.Rows) error {
		var live, first int64
		var deposited, withdrawn big.Int
		if err := rows.Scan(&owner, &vault, &live, &first, &deposited, &withdrawn); err != nil {
			return err
		}
		u := s.users[common.Address(owner)]
		v := u.in(common.Address(vault))
		v.live, v.first = uint32(live), uint32(first)
		u.deposited = add(u.deposited, 1, &deposited)
		u.withdrawn = add(u.withdrawn, 1, &withdrawn)
		return nil
	})
	if err != nil {
		return err
	}
	if table, err = wanted(); err != nil {
		return err
	}
	return l.ask(ctx, "load_users", table, func(rows driver.Rows) error {
		var since uint64
		if err := rows.Scan(&owner, &since); err != nil {
			return err
		}
		s.users[common.Address(owner)].since = since
		return nil
	})
}

func (l loader) requests(ctx context.Context, s *state, keys []requestKey) error {
	if len(keys) == 0 {
		return nil
	}
	wanted := func() (*ext.Table, error) {
		t, err := ext.NewTable("wanted", ext.Column("vault", "FixedString(20)"), ext.Column("request_index", "UInt64"))
		for i := 0; err == nil && i < len(keys); i++ {
			err = t.Append(keys[i].vault[:], keys[i].index)
		}
		return t, err
	}
	table, err := wanted()
	if err != nil {
		return err
	}
	var vault []byte
	var index uint64
	err = l.ask(ctx, "load_request_names", table, func(rows driver.Rows) error {
		var seq, since uint64
		if err := rows.Scan(&vault, &index, &seq, &since); err != nil {
			return err
		}
		k := s.requests[requestKey{common.Address(vault), index}]
		if since == seq {
			k.made(seq)
		} else {
			k.unmade()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if table, err = wanted(); err != nil {
		return err
	}
	return l.ask(ctx, "load_requests", table, func(rows driver.Rows) error {
		var user, receiver, tx []byte
		r := request{shares: new(big.Int), estimate: new(big.Int), fundedAssets: new(big.Int), claimedAssets: new(big.Int)}
		err := rows.Scan(&vault, &index, &r.since, &user, &receiver, &r.partner, r.shares, r.estimate, &r.expires,
			&r.requested.count, &r.requested.ts, &r.requestedBlock, &tx, &r.logIndex,
			&r.funded.count, &r.funded.ts, r.fundedAssets, &r.claimed.count, &r.claimed.ts, r.claimedAssets,
			&r.cancelled.count, &r.cancelled.ts, &r.expired.count, &r.expired.ts)
		if err != nil {
			return err
		}
		r.user, r.receiver, r.tx = common.Address(user), common.Address(receiver), common.Hash(tx)
		s.requests[requestKey{common.Address(vault), index}].request = r
		return nil
	})
}

func (l loader) partners(ctx context.Context, s *state, keys []partnerKey) error {
	if len(keys) == 0 {
		return nil
	}
	wanted, err := ext.NewTable("wanted", ext.Column("partner", "UInt32"), ext.Column("user", "FixedString(20)"))
	for i := 0; err == nil && i < len(keys); i++ {
		err = wanted.Append(keys[i].partner, keys[i].user[:])
	}
	if err != nil {
		return err
	}
	return l.ask(ctx, "load_partners", wanted, func(rows driver.Rows) error {
		var user []byte
		var k partnerKey
		var live int64
		if err := rows.Scan(&k.partner, &user, &live); err != nil {
			return err
		}
		k.user = common.Address(user)
		s.partners[k].deposits = uint32(live)
		return nil
	})
}
