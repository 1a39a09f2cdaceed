// Package deposits answers about deposits: those of a user, of a vault, those through a
// partner, and the queue of those that no sweep has reached.
//
// All of it is read out of facts, but for one number. A list is read newest first, in the
// order in which the rows of a user, a vault or a partner lie together, and reading stops
// at the end of the page, so that somebody with a million deposits costs what anybody
// costs. How long the list is, is the sum of the signs of the same rows; of a partner it
// stands in the partner's running totals. When a deposit was swept is what the first sweep says
// whose range holds its number.
package deposits

import (
	"context"
	_ "embed"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed user.sql
	sqlUser string
	//go:embed user_count.sql
	sqlUserCount string
	//go:embed vault.sql
	sqlVault string
	//go:embed vault_count.sql
	sqlVaultCount string
	//go:embed partner.sql
	sqlPartner string
	//go:embed sweeps.sql
	sqlSweeps string
)

type depositJSON struct {
	ID            string  `json:"id"`
	VaultAddress  string  `json:"vaultAddress"`
	VaultName     string  `json:"vaultName"`
	UserAddress   string  `json:"userAddress"`
	SenderAddress string  `json:"senderAddress"`
	AssetAmount   string  `json:"assetAmount"`
	Shares        string  `json:"shares"`
	PartnerID     *uint32 `json:"partnerId,omitempty"`
	SweptAt       *string `json:"sweptAt"`
	TxHash        string  `json:"txHash"`
	BlockNumber   string  `json:"blockNumber"`
	LogIndex      uint32  `json:"logIndex"`
	Timestamp     string  `json:"timestamp"`
}

// deposit is one as the questions give it.
type deposit struct {
	Vault    string   `ch:"vault"`
	Number   uint64   `ch:"deposit_id"`
	User     string   `ch:"user"`
	Sender   string   `ch:"sender"`
	Partner  uint32   `ch:"partner"`
	Assets   *big.Int `ch:"assets"`
	Shares   *big.Int `ch:"shares"`
	Block    uint64   `ch:"block"`
	Time     uint32   `ch:"ts"`
	Tx       string   `ch:"tx"`
	LogIndex uint32   `ch:"log_index"`
}

// OfUser is a page of a user's deposits, newest first, of all vaults or one.
func OfUser(r *httpapi.Request) (*httpapi.Answer, error) {
	user, page, span, vault := r.PathAddress(), r.Params.Page(), r.Params.Span(), r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		var anyVault common.Address
		if vault != nil {
			if _, known := p.Vault(*vault); !known {
				if r.AsFile() {
					return httpapi.Whole(ctx, r, p, columns, httpapi.Once[depositJSON](nil))
				}
				return r.List([]depositJSON{}, page, 0), nil
			}
			anyVault = *vault
		}
		args := pin.Args{"user": user, "vault": anyVault, "from": span.From, "to": span.To}
		return answer(ctx, r, p, page, sqlUser, args, func() (int64, error) { return count(ctx, p, sqlUserCount, args) })
	})
}

// OfVault is a page of a vault's deposits, newest first, as the vault numbers them.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if _, known := p.Vault(vault); !known {
			return nil, httpapi.NoSuchVault()
		}
		args := pin.Args{"vault": vault, "from": span.From, "to": span.To}
		return answer(ctx, r, p, page, sqlVault, args, func() (int64, error) { return count(ctx, p, sqlVaultCount, args) })
	})
}

// OfPartner is a page of the deposits through the partner who asks, newest first.
func OfPartner(r *httpapi.Request) (*httpapi.Answer, error) {
	page := r.Params.Page()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		args := pin.Args{"partner": r.Partner.ID}
		return answer(ctx, r, p, page, sqlPartner, args, func() (int64, error) { return through(ctx, p, r.Partner.ID) })
	})
}

// answer is a page of deposits, or all of them as a file.
func answer(ctx context.Context, r *httpapi.Request, p *pin.Pin, page httpapi.Page, question string, args pin.Args, count func() (int64, error)) (*httpapi.Answer, error) {
	args["limit"], args["offset"] = uint64(page.Size), page.Offset()
	before(args, nil)
	if r.AsFile() {
		return file(ctx, r, p, question, args)
	}
	var out []depositJSON
	var total int64
	err := pin.Together(
		func() (err error) { out, err = list(ctx, p, question, args); return },
		func() (err error) { total, err = count(); return },
	)
	if err != nil {
		return nil, err
	}
	return r.List(out, page, total), nil
}

// count is the answer to a question for how many deposits there are, put to facts.
func count(ctx context.Context, p *pin.Pin, question string, args pin.Args) (int64, error) {
	type row struct {
		Total int64 `ch:"total"`
	}
	r, _, err := pin.AskOne[row](ctx, p, question, args)
	return r.Total, err
}

// through is how many deposits there are through a partner.
func through(ctx context.Context, p *pin.Pin, partner uint32) (total int64, err error) {
	vaults, err := counts.Through(ctx, p, partner)
	for _, v := range vaults {
		total += v.Deposits
	}
	return total, err
}

// list reads a page of deposits.
func list(ctx context.Context, p *pin.Pin, question string, args pin.Args) ([]depositJSON, error) {
	rows, err := pin.Ask[deposit](ctx, p, question, args)
	if err != nil {
		return nil, err
	}
	return described(ctx, p, rows)
}

// described are some deposits with the sweeps that reached them.
func described(ctx context.Context, p *pin.Pin, rows []deposit) ([]depositJSON, error) {
	sweeps, err := sweepsOf(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	out := make([]depositJSON, len(rows))
	for i, d := range rows {
		out[i] = d.json(p)
		out[i].SweptAt = httpapi.TimeOrNull(uint64(sweptAt(&d, sweeps)))
	}
	return out, nil
}

// sweep took some deposits of a vault.
type sweep struct {
	Vault string `ch:"vault"`
	From  uint64 `ch:"from_id"`
	To    uint64 `ch:"to_id"`
	Time  uint32 `ch:"ts"`
}

// sweepsOf are the sweeps that hold one of some deposits, and perhaps others of the same
// numbers, in the order of the chain.
func sweepsOf(ctx context.Context, p *pin.Pin, deposits []deposit) ([]sweep, error) {
	if len(deposits) == 0 {
		return nil, nil
	}
	numbers := make([]uint64, len(deposits))
	for i, d := range deposits {
		numbers[i] = d.Number
	}
	slices.Sort(numbers)
	return pin.Ask[sweep](ctx, p, sqlSweeps, pin.Args{"ids": numbers})
}

// sweptAt is the time of the first sweep that holds a deposit; 0 for none.
func sweptAt(d *deposit, sweeps []sweep) uint32 {
	for _, s := range sweeps {
		if s.Vault == d.Vault && s.From <= d.Number && d.Number <= s.To {
			return s.Time
		}
	}
	return 0
}

// json is the deposit as one that was not swept.
func (d *deposit) json(p *pin.Pin) depositJSON {
	user := httpapi.ToAddress(d.User).Hex()
	sender := user // mostly, and its checksum takes as long as the rest of the row
	if d.Sender != d.User {
		sender = httpapi.ToAddress(d.Sender).Hex()
	}
	address, name := p.Written(httpapi.ToAddress(d.Vault))
	tx := httpapi.ToHash(d.Tx)
	return depositJSON{
		ID: httpapi.LogID(tx, d.LogIndex), VaultAddress: address, VaultName: name, UserAddress: user, SenderAddress: sender,
		AssetAmount: d.Assets.String(), Shares: d.Shares.String(), PartnerID: httpapi.PartnerOrAbsent(d.Partner),
		TxHash: tx, BlockNumber: httpapi.Decimal(d.Block), LogIndex: d.LogIndex, Timestamp: httpapi.Time(uint64(d.Time)),
	}
}
