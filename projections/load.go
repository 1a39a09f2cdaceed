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
func (l loader) load(ctx context.Context, s *state, facts facts) error {
	s.batch++
	if s.tops == nil {
		if err := l.tops(ctx, s); err != nil {
			return fmt.Errorf("load the newest requests from %s: %w", l.database, err)
		}
	}
	if s.allUsers && s.allRequests {
		return nil
	}
	users, requests := missing(s, facts)
	if err := l.users(ctx, s, users); err != nil {
		return fmt.Errorf("load users from %s: %w", l.database, err)
	}
	if err := l.requests(ctx, s, requests); err != nil {
		return fmt.Errorf("load requests from %s: %w", l.database, err)
	}
	return nil
}

// missing makes an empty entry for every key of facts that the state lacks, and
// lists those of them that may exist.
func missing(s *state, facts facts) (users []common.Address, requests []requestKey) {
	for x := range facts.all() {
		switch x.event {
		case contracts.KindDepositAccepted, contracts.KindWithdrawalRequested, contracts.KindWithdrawalClaimed:
			if !s.knows(x.args.owner) {
				s.user(x.args.owner)
				if !s.allUsers {
					users = append(users, x.args.owner)
				}
			}
		}
		switch x.event {
		case contracts.KindWithdrawalRequested, contracts.KindWithdrawalFunded, contracts.KindWithdrawalClaimed,
			contracts.KindWithdrawalCancelled, contracts.KindWithdrawalExpired:
			k := requestKey{x.log.vault, x.args.id}
			if s.requests[k] == 0 {
				if !s.fresh(k) {
					requests = append(requests, k)
				}
				s.request(k)
			}
		}
	}
	return users, requests
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
		u := s.user(common.Address(owner))
		v := s.tie(u, vaultTie, s.vault(common.Address(vault)))
		v.live, v.first = uint32(live), uint32(first)
		d, w := amountOf(&deposited), amountOf(&withdrawn)
		u.deposited.Add(&u.deposited, &d)
		u.withdrawn.Add(&u.withdrawn, &w)
		return nil
	})
	if err != nil {
		return err
	}
	if table, err = wanted(); err != nil {
		return err
	}
	return l.ask(ctx, "load_partners", table, func(rows driver.Rows) error {
		var partner uint32
		var live int64
		if err := rows.Scan(&partner, &owner, &live); err != nil {
			return err
		}
		s.tie(s.user(common.Address(owner)), partnerTie, partner).live = uint32(live)
		return nil
	})
}

// tops reads the highest index of a request of each vault.
func (l loader) tops(ctx context.Context, s *state) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"seq": fmt.Sprint(l.seq)}))
	rows, err := l.conn.Query(ctx, question("load_tops", l.database))
	if err != nil {
		return err
	}
	defer rows.Close()
	tops := map[common.Address]uint64{}
	for rows.Next() {
		var vault []byte
		var top uint64
		if err := rows.Scan(&vault, &top); err != nil {
			return err
		}
		tops[common.Address(vault)] = top
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.tops = tops
	return nil
}

// amountOf takes a number that ClickHouse has as Int256.
func amountOf(v *big.Int) (out amount) {
	out.SetFromBig(v)
	return out
}

func (l loader) requests(ctx context.Context, s *state, keys []requestKey) error {
	if len(keys) == 0 {
		return nil
	}
	wanted, err := ext.NewTable("wanted", ext.Column("vault", "FixedString(20)"), ext.Column("request_index", "UInt64"))
	for i := 0; err == nil && i < len(keys); i++ {
		err = wanted.Append(keys[i].vault[:], keys[i].index)
	}
	if err != nil {
		return err
	}
	var vault []byte
	var index uint64
	return l.ask(ctx, "load_requests", wanted, func(rows driver.Rows) error {
		var requested, funded, claimed, cancelled, expired int64
		var estimate big.Int
		var expires uint64
		if err := rows.Scan(&vault, &index, &requested, &funded, &claimed, &cancelled, &expired, &estimate, &expires); err != nil {
			return err
		}
		r := s.request(requestKey{common.Address(vault), index})
		r.requested, r.funded, r.claimed = uint32(requested), uint32(funded), uint32(claimed)
		r.cancelled, r.expired = uint32(cancelled), uint32(expired)
		r.estimate, r.expires = amountOf(&estimate), expires
		return nil
	})
}
