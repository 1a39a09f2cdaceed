package users

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
)

// columns are those of a file of users.
var columns = []files.Column[userJSON]{
	files.Text("address", func(u *userJSON) string { return u.Address }),
	files.Time("firstSeen", func(u *userJSON) string { return u.FirstSeen }),
	files.Text("totalDeposited", func(u *userJSON) string { return u.TotalDeposited }),
	files.Text("totalWithdrawn", func(u *userJSON) string { return u.TotalWithdrawn }),
}

// addedAtOnce is how many parts of a file are put in order at once: for a list by amounts that reads the totals of all users
// each time.
const addedAtOnce = 10

// file is all users of a vault or of all, as of its block: a list by amounts only knows the newest one, which moves on while a
// file is sent.
func (o order) file(ctx context.Context, r *httpapi.Request, p *ask.Pin, vault common.Address) (*httpapi.Answer, error) {
	after := o.beginning()
	var ahead []addedUp
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) (_ []userJSON, err error) {
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
