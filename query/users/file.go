package users

import (
	"context"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

// columns are those of a file of users.
var columns = []files.Column[userJSON]{
	files.Text("address", func(u *userJSON) string { return u.Address }),
	files.Time("firstSeen", func(u *userJSON) string { return u.FirstSeen }),
	files.Text("totalDeposited", func(u *userJSON) string { return u.TotalDeposited }),
	files.Text("totalWithdrawn", func(u *userJSON) string { return u.TotalWithdrawn }),
}

// above and below are beyond all keys of a list.
var above, below = new(big.Int).Lsh(big.NewInt(1), 254), big.NewInt(-1)

// beginning stands before the first user of a list.
func beginning(descending bool) *user {
	if descending {
		return &user{Key: above}
	}
	return &user{Key: below}
}

// addedAtOnce is how many parts of a file are added up at once: each time that is of
// everybody, and what is kept of a user until its turn comes is little.
const addedAtOnce = 25

// file is all users of a vault or of all, part after part, each after the last user of the one before.
func (o order) file(ctx context.Context, r *httpapi.Request, p *pin.Pin, vault common.Address) (*httpapi.Answer, error) {
	part := o.addedUpParts(p, vault)
	if o.by == firstSeen && vault == allVaults {
		total, err := counts.Users(ctx, p, allVaults, 0)
		if err != nil {
			return nil, err
		}
		part = o.listParts(p, total)
	}
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) ([]userJSON, error) {
		users, err := part(ctx)
		return written(users), err
	})
}

// listParts are those of the list in the order of first seen, in which so many are left.
func (o order) listParts(p *pin.Pin, left int64) func(context.Context) ([]user, error) {
	from := beginning(o.descending)
	return func(ctx context.Context) ([]user, error) {
		users, err := o.part(ctx, p, from, func() (int64, error) { return left, nil })
		if err != nil || len(users) == 0 {
			return nil, err
		}
		left -= int64(len(users))
		from = &users[len(users)-1]
		return users, nil
	}
}

// addedUpParts are those of the other lists, also at the newest block: the table's lists by
// totals hold that one alone, which does not stand still for as long as a file takes. Nobody
// has two places in such a list, for users of one total follow each other by address.
func (o order) addedUpParts(p *pin.Pin, vault common.Address) func(context.Context) ([]user, error) {
	from := beginning(o.descending)
	var ahead []user // who they are
	return func(ctx context.Context) ([]user, error) {
		if len(ahead) == 0 {
			var err error
			if ahead, err = o.readAddedUp(ctx, p, vault, addedAtOnce*o.page.Size, from); err != nil || len(ahead) == 0 {
				return nil, err
			}
			last := ahead[len(ahead)-1]
			from = &last
		}
		users := slices.Clone(ahead[:min(len(ahead), o.page.Size)]) // which are kept until they are written, with what is shown of them
		ahead = ahead[len(users):]
		return users, describe(ctx, p, users, vault)
	}
}
