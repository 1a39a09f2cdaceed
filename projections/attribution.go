package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// Attribution is a value that attributes deposits and requests of a vault to a partner.
type Attribution struct {
	Vault    common.Address `ch:"vault"`
	Value    common.Hash    `ch:"attribution"`
	Deposits uint64         `ch:"deposits"`
	Requests uint64         `ch:"requests"`
	// First is the block of the first of them, and Since its time in Unix seconds.
	First uint64 `ch:"first"`
	Since uint32 `ch:"since"`
}

//go:embed sql/attributions.sql
var sqlAttributions string

// Attributions returns the attribution values of the live generation, the most frequent first, at most the given
// number.
func (o *Operator) Attributions(ctx context.Context, most uint64) (all []Attribution, err error) {
	generations, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range generations {
		if g.State != registry.Live || g.Seq == nil {
			continue
		}
		conn, err := o.clickhouse.OpenPatient(g.Database)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if err := conn.Select(readmodel.Parameters(ctx, map[string]uint64{"seq": *g.Seq, "most": most}), &all,
			sqlAttributions); err != nil {
			return nil, fmt.Errorf("read the attribution values of generation %d: %w", g.ID, err)
		}
		return all, nil
	}
	return nil, errors.New("no generation is live: `navlog projection list` shows them")
}
