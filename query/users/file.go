package users

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/serve"
)

// columns are the columns of a file of users.
var columns = []files.Column[userJSON]{
	files.Text("address", func(u *userJSON) string { return u.Address }),
	files.Time("firstSeen", func(u *userJSON) string { return u.FirstSeen }),
	files.Text("totalDeposited", func(u *userJSON) string { return u.TotalDeposited }),
	files.Text("totalWithdrawn", func(u *userJSON) string { return u.TotalWithdrawn }),
}

// addedAtOnce is how many pages of a file are sorted at once, because sorting a list by amounts reads the totals of
// all users each time.
const addedAtOnce = 10

// file returns all users, of a vault or in total, at its block. It does not read the lists by amounts: they only know
// the newest block, which changes while a file is sent.
func (o order) file(ctx context.Context, r *serve.Request, p *ask.Pin, vault common.Address) (*serve.Answer, error) {
	after := o.beginning()
	var ahead []addedUp
	return serve.Whole(ctx, r, p, columns, func(ctx context.Context) (_ []userJSON, err error) {
		if len(ahead) == 0 {
			if ahead, after, err = o.rank(ctx, p, vault, 0, addedAtOnce*uint64(o.page.Size), after); err != nil {
				return nil, err
			}
		}
		users := ahead[:min(len(ahead), o.page.Size)]
		ahead = ahead[len(users):]
		return described(users), nil
	})
}
