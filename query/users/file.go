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

// addedAtOnce is how many parts of a file by amounts are put in order at once: that reads the
// totals of all users each time.
const addedAtOnce = 25

// file is all users of a vault or of all. A list by amounts only knows the newest block, which
// moves on while a file is sent: so a file by amounts is put in order as of its block.
func (o order) file(ctx context.Context, r *httpapi.Request, p *ask.Pin, vault common.Address) (*httpapi.Answer, error) {
	next := o.filePages(p, vault)
	if o.by != firstSeen {
		next = o.fileByAmount(p, vault)
	}
	return httpapi.Whole(ctx, r, p, columns, next)
}

func (o order) filePages(p *ask.Pin, vault common.Address) func(context.Context) ([]userJSON, error) {
	var last *ask.Place
	return func(ctx context.Context) ([]userJSON, error) {
		rows, err := o.question().After(ctx, p, ofVault{lists[o.by], vault}, last, o.page.Size)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		place := rows[len(rows)-1].Place()
		last = &place
		out, _, err := describe(ctx, p, vault, rows, true, false)
		return out, err
	}
}

func (o order) fileByAmount(p *ask.Pin, vault common.Address) func(context.Context) ([]userJSON, error) {
	after := o.beginning()
	var ahead []user
	return func(ctx context.Context) (_ []userJSON, err error) {
		if len(ahead) == 0 {
			if ahead, after, err = o.rank(ctx, p, vault, 0, addedAtOnce*uint64(o.page.Size), after); err != nil || len(ahead) == 0 {
				return nil, err
			}
		}
		users := ahead[:min(len(ahead), o.page.Size)]
		ahead = ahead[len(users):]
		out, _, err := describe(ctx, p, vault, users, false, false)
		return out, err
	}
}
