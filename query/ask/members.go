package ask

import (
	"context"
	_ "embed"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed sql/members.sql
var sqlMembers string

type someMembers struct {
	Vault common.Address `ask:"vault"`
	Keys  []AddressAsKey `ask:"keys" reads:"members"`
}

type member struct {
	Mark
	User      common.Address `ch:"user"`
	FirstSeen uint64         `ch:"first_seen"`
}

var members = New[someMembers, member](sqlMembers)

// FirstSeen says when some users were first seen in a vault, or in any for zero, in Unix seconds.
// Who is no user is not among them.
func FirstSeen(ctx context.Context, p *Pin, vault common.Address, users ...common.Address) (map[common.Address]uint64, error) {
	args := someMembers{Vault: vault}
	for _, u := range users {
		args.Keys = append(args.Keys, AddressAsKey(u))
	}
	rows, err := members.Rows(ctx, p, args)
	out := make(map[common.Address]uint64, len(rows))
	for _, r := range rows {
		out[r.User] = r.FirstSeen
	}
	return out, err
}

// IsMember reports whether an address is a user of a vault, or of any for zero.
func IsMember(ctx context.Context, p *Pin, user, vault common.Address) (bool, error) {
	seen, err := FirstSeen(ctx, p, vault, user)
	_, ok := seen[user]
	return ok, err
}
