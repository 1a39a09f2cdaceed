package users

import (
	"context"
	"math/big"

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

// file is all users, page after page, always in the order of first seen: the lists by totals
// hold the newest block alone, which does not stand still for as long as a file takes. The
// rows of the list are counted once: no later page can have more.
func (o order) file(ctx context.Context, r *httpapi.Request, p *pin.Pin) (*httpapi.Answer, error) {
	from := beginning(o.descending)
	n, err := count(ctx, p, lists[firstSeen], allVaults)
	if err != nil {
		return nil, err
	}
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) ([]userJSON, error) {
		var users []user
		err := pin.WholePage(uint64(o.page.Size),
			func(most uint64) (whole bool, err error) {
				users, err = o.readPage(ctx, p, most, from)
				return len(users) > o.page.Size, err
			},
			func() (uint64, error) { return n.Rows, nil })
		if err != nil || len(users) == 0 {
			return nil, err
		}
		users = users[:min(len(users), o.page.Size)]
		from = &users[len(users)-1]
		return written(users), nil
	})
}
