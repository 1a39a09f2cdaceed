package derive

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// List is a list of users, by the number that the table users gives it. 0 is that
// of the cursor row.
type List uint8

// The lists.
const (
	Members List = 1 + iota
	ByFirst
	ByDeposited
	ByWithdrawn
)

// User is a row of users.
type User struct {
	List                 List
	Vault                common.Address
	Partner              uint32
	Key                  decode.Amount
	User                 common.Address
	FirstBlock           uint64 // readmodel.Never: only claimed
	FirstTime            uint32 // Unix seconds
	Deposited, Withdrawn decode.Amount
}

// scope is somebody as a user of a vault, of a partner, or (zeros) of all.
type scope struct {
	vault   common.Address
	partner uint32
	user    common.Address
}

func (s scope) all() bool { return s.vault == common.Address{} && s.partner == 0 }

// member is what is known of somebody in a scope.
type member struct {
	firstBlock           uint64
	firstTime            uint32
	deposited, withdrawn decode.Amount // of all
}

//go:embed users.sql
var liveMembers string

// Users gives what units change in users.
func Users(ctx context.Context, conn driver.Conn, units []decode.Unit) (Difference[User], error) {
	state, err := readMembers(ctx, conn, units)
	if err != nil {
		return Difference[User]{}, failed(readmodel.Users, err)
	}
	old := userRows(state)
	for i := range units {
		if units[i].Rewrites {
			clipMembers(state, units[i].Ancestor())
		}
		for f, e := range units[i].Facts.Effects() {
			foldMember(state, f, e)
		}
	}
	return between(old, userRows(state)), nil
}

// scopes are those that an effect concerns; seen tells whether it makes its owner a user.
func scopes(f *decode.Fact, e *decode.Effect) (out []scope, seen bool) {
	switch e.Kind {
	case decode.Deposit:
		out = []scope{{user: e.Owner}, {vault: f.Log.Vault, user: e.Owner}}
		if e.Partner > 0 {
			out = append(out, scope{partner: e.Partner, user: e.Owner})
		}
		return out, true
	case decode.Requested:
		return []scope{{user: e.Owner}, {vault: f.Log.Vault, user: e.Owner}}, true
	case decode.Claimed:
		return []scope{{user: e.Owner}}, false
	}
	return nil, false
}

// clipMembers takes back who was first seen above a block.
func clipMembers(state map[scope]*member, block uint64) {
	for _, m := range state {
		if m.firstBlock > block {
			m.firstBlock, m.firstTime = readmodel.Never, 0
		}
	}
}

// foldMember takes the next effect.
func foldMember(state map[scope]*member, f *decode.Fact, e *decode.Effect) {
	all, seen := scopes(f, e)
	for _, s := range all {
		m := state[s]
		if m == nil {
			m = &member{firstBlock: readmodel.Never}
			state[s] = m
		}
		if seen && f.Sign > 0 && m.firstBlock == readmodel.Never {
			m.firstBlock, m.firstTime = f.Log.Block, f.Log.Time
		}
		if s.all() {
			m.add(f.Sign, e)
		}
	}
}

// add moves the sums of somebody by an effect, or by one that is taken back.
func (m *member) add(sign int8, e *decode.Effect) {
	sum := &m.deposited
	switch e.Kind {
	case decode.Deposit:
	case decode.Claimed:
		sum = &m.withdrawn
	default:
		return
	}
	if sign > 0 {
		sum.Add(sum, &e.Assets)
	} else {
		sum.Sub(sum, &e.Assets)
	}
}

// userRows are the rows that the table has of what is known.
func userRows(state map[scope]*member) map[User]bool {
	rows := map[User]bool{}
	for s, m := range state {
		row := User{List: Members, Vault: s.vault, Partner: s.partner, User: s.user, FirstBlock: m.firstBlock, FirstTime: m.firstTime,
			Deposited: m.deposited, Withdrawn: m.withdrawn}
		isUser := m.firstBlock != readmodel.Never
		if isUser || s.all() && !m.withdrawn.IsZero() {
			rows[row] = true
		}
		if !isUser || !s.all() {
			continue
		}
		row.List, row.Key = ByDeposited, m.deposited
		rows[row] = true
		row.List, row.Key = ByWithdrawn, m.withdrawn
		rows[row] = true
		row.List, row.Deposited, row.Withdrawn = ByFirst, decode.Amount{}, decode.Amount{}
		row.Key.SetUint64(m.firstBlock)
		rows[row] = true
	}
	return rows
}

// readMembers reads what is known of everybody whom units name, in each scope.
func readMembers(ctx context.Context, conn driver.Conn, units []decode.Unit) (map[scope]*member, error) {
	state := map[scope]*member{}
	var wanted [][]any
	asked := map[scope]bool{}
	for i := range units {
		for f, e := range units[i].Facts.Effects() {
			all, _ := scopes(f, e)
			for _, s := range all {
				if !asked[s] {
					asked[s] = true
					wanted = append(wanted, []any{s.vault.Bytes(), s.partner, s.user.Bytes()})
				}
			}
		}
	}
	if len(wanted) == 0 {
		return state, nil
	}
	t, err := table(wanted, ext.Column("vault", "FixedString(20)"), ext.Column("partner", "UInt32"), ext.Column("user", "FixedString(20)"))
	if err != nil {
		return nil, err
	}
	var vault, user []byte
	err = ask(ctx, conn, liveMembers, nil, t, func(rows driver.Rows) error {
		var s scope
		var m member
		var deposited, withdrawn big.Int
		if err := rows.Scan(&vault, &s.partner, &user, &m.firstBlock, &m.firstTime, &deposited, &withdrawn); err != nil {
			return err
		}
		s.vault, s.user = address(vault), address(user)
		m.deposited, m.withdrawn = amountOf(&deposited), amountOf(&withdrawn)
		state[s] = &m
		return nil
	})
	return state, err
}
