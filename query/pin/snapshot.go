package pin

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

var (
	//go:embed sql/last_seq.sql
	sqlLastSeq string
	//go:embed sql/newest_blocks.sql
	sqlNewestBlocks string
	//go:embed sql/first_blocks.sql
	sqlFirstBlocks string
	//go:embed sql/vaults.sql
	sqlVaults string
	//go:embed sql/rewritten.sql
	sqlRewritten string
)

// source is the database of a generation and the way to it.
type source struct {
	id       int32
	database string
	conn     driver.Conn
}

// Snapshot is a whole state of one generation that answers can be pinned to. It is
// never changed.
type Snapshot struct {
	Generation int32
	Seq        uint64 // the end of the newest whole unit
	Block      uint64 // the newest indexed one
	Time       uint64 // of that block, Unix seconds
	First      uint64 // the first indexed block
	Vaults     []Vault
	// Absent are the vaults of the log of which the generation has nothing.
	Absent []Vault
	// Partial says that the generation is still being built, the first one: only
	// facts can be asked for.
	Partial bool

	source  *source
	chainID uint64
}

// Vault is what the newest record about a vault says of it.
type Vault struct {
	// Seq is that record.
	Seq uint64
	// Absent says that the generation has no logs of it.
	Absent bool
	// Removed says that an operator removed it: the next generation will not
	// have it.
	Removed    bool
	Address    common.Address
	Written    string // the address with its checksum
	Name       string
	Symbol     string
	Decimals   uint32
	Asset      Asset
	StartBlock uint64
}

// Asset is the token that a vault holds.
type Asset struct {
	Address  common.Address
	Symbol   string
	Decimals uint32
}

// sameAs tells whether two looks found the same.
func (s *Snapshot) sameAs(other *Snapshot) bool {
	return s != nil && other != nil && s.Generation == other.Generation && s.Seq == other.Seq && s.Partial == other.Partial
}

// unlikeAssets tells whether a sum over vaults adds units of different size.
func (s *Snapshot) unlikeAssets() bool {
	return s != nil && slices.ContainsFunc(s.Vaults, func(v Vault) bool { return v.Asset.Decimals != s.Vaults[0].Asset.Decimals })
}

// emptyError says that there is nothing to serve in a generation yet.
type emptyError struct{ database string }

func (e emptyError) Error() string {
	return e.database + " holds no indexed block yet: ingest and project have to get there first"
}

// lastSeq is how far a generation is.
func lastSeq(ctx context.Context, s *source) (uint64, error) {
	rows, err := ask[struct {
		Seq uint64 `ch:"seq"`
	}](ctx, s, sqlLastSeq, nil)
	if err != nil {
		return 0, fmt.Errorf("read how far %s is: %w", s.database, err)
	}
	return rows[0].Seq, nil
}

// read reads what a snapshot says at its seq.
func (s *Snapshot) read(ctx context.Context) error {
	newest, ok, err := newestBlock(ctx, s.source, s.Seq, noBlockIsAbove)
	if err != nil {
		return fmt.Errorf("read the newest block of %s: %w", s.source.database, err)
	}
	if !ok {
		return emptyError{s.source.database}
	}
	s.Block, s.Time = newest.Block, uint64(newest.Time)
	return Together(
		func() error {
			first, _, err := liveBlock(ctx, s.source, sqlFirstBlocks, Args{"seq": s.Seq})
			s.First = first.Block
			if err != nil {
				return fmt.Errorf("read the first block of %s: %w", s.source.database, err)
			}
			return nil
		},
		func() error {
			rows, err := ask[vaultRecord](ctx, s.source, sqlVaults, Args{"seq": s.Seq})
			if err != nil {
				return fmt.Errorf("read the vaults of %s: %w", s.source.database, err)
			}
			if s.Vaults, s.Absent, err = vaults(rows, s.chainID); err != nil {
				return fmt.Errorf("read the vaults of %s: %w", s.source.database, err)
			}
			return nil
		},
	)
}

type blockRow struct {
	Block uint64 `ch:"block"`
	Time  uint32 `ch:"ts"`
	Seq   uint64 `ch:"seq"`
	Sign  int8   `ch:"sign"`
}

// fewBlocks is how many block records are looked at first: mostly the first is live.
const fewBlocks = 8

const noBlockIsAbove = ^uint64(0)

// newestBlock is the newest block up to a block that is live at a seq.
func newestBlock(ctx context.Context, s *source, seq, block uint64) (blockRow, bool, error) {
	return liveBlock(ctx, s, sqlNewestBlocks, Args{"seq": seq, "block": block})
}

// liveBlock is the first live block among those that a question gives, in the question's
// order: a few at first, and more until one is found. All records of one height stand
// together. The newest of them decides: where it is no retraction, that block is live, and
// no other one of the height is. The last height of an answer that was cut may lack
// records, and is read again.
func liveBlock(ctx context.Context, s *source, question string, args Args) (live blockRow, ok bool, err error) {
	for few := uint64(fewBlocks); ; few *= 64 {
		args["few"] = few
		rows, err := ask[blockRow](ctx, s, question, args)
		if err != nil {
			return blockRow{}, false, err
		}
		full := uint64(len(rows)) == few
		for len(rows) > 0 {
			n := slices.IndexFunc(rows, func(r blockRow) bool { return r.Block != rows[0].Block })
			if n < 0 {
				if full {
					break
				}
				n = len(rows)
			}
			newest := slices.MaxFunc(rows[:n], func(a, b blockRow) int { return cmp.Compare(a.Seq, b.Seq) })
			if newest.Sign > 0 {
				return newest, true, nil
			}
			rows = rows[n:]
		}
		if !full {
			return blockRow{}, false, nil
		}
	}
}

// vaultRecord is one row of records with kind vault.
type vaultRecord struct {
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"`
	Retracts uint64 `ch:"retracts"`
	Passed   bool   `ch:"passed"`
	Payload  string `ch:"payload"`
}

// vaults folds the records about vaults, which are in the order of the log: the newest
// live one of an address counts, and one that removes it leaves what it was called. here
// are those that the generation has, absent the others, each listed by their start block,
// then by address.
func vaults(records []vaultRecord, chainID uint64) (here, absent []Vault, err error) {
	gone := make(map[uint64]bool)
	for _, r := range records {
		if r.Sign < 0 {
			gone[r.Retracts] = true
		}
	}
	newest, has := make(map[common.Address]Vault), make(map[common.Address]bool)
	for _, r := range records {
		v, err := decode(r.Payload, chainID)
		if err != nil {
			return nil, nil, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		if r.Sign < 0 || gone[r.Seq] {
			continue
		}
		if before, known := newest[v.Address]; known && v.Removed {
			v = before
			v.Removed = true
		}
		v.Seq = r.Seq
		newest[v.Address] = v
		has[v.Address] = has[v.Address] || !r.Passed
	}
	here, absent = []Vault{}, []Vault{}
	for _, v := range newest {
		if has[v.Address] {
			here = append(here, v)
		} else {
			v.Absent = true
			absent = append(absent, v)
		}
	}
	return sorted(here), sorted(absent), nil
}

// VaultsAt folds the records about vaults up to a seq of the log, that is: says which vaults
// the log had there, those that had left included. They are listed by their start block, then
// by address. It answers the same at every later seq of the pin, unless an operator's decision
// retracts one of these records.
func (p *Pin) VaultsAt(ctx context.Context, seq uint64) ([]Vault, error) {
	records, err := Ask[vaultRecord](ctx, p, sqlVaults, nil)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r vaultRecord) bool { return r.Sign > 0 && r.Seq > seq })
	here, absent, err := vaults(records, p.ChainID)
	if err != nil {
		return nil, fmt.Errorf("read the vaults at record %d: %w", seq, err)
	}
	return sorted(append(here, absent...)), nil
}

func sorted(vaults []Vault) []Vault {
	slices.SortFunc(vaults, func(a, b Vault) int {
		return cmp.Or(cmp.Compare(a.StartBlock, b.StartBlock), a.Address.Cmp(b.Address))
	})
	return vaults
}

func decode(payload string, chainID uint64) (Vault, error) {
	var record event.Record
	if err := proto.Unmarshal([]byte(payload), &record); err != nil {
		return Vault{}, fmt.Errorf("its payload cannot be decoded: %w; rebuild the generation with `navlog projection rebuild`", err)
	}
	v := record.GetVault()
	if v == nil || len(v.GetAddress()) != common.AddressLength {
		return Vault{}, errors.New("its payload names no vault; rebuild the generation with `navlog projection rebuild`")
	}
	if record.GetChainId() != chainID {
		return Vault{}, plainError(fmt.Sprintf("it is of chain %d and this program serves chain %d: give it the read models of its own chain", record.GetChainId(), chainID))
	}
	address := common.BytesToAddress(v.GetAddress())
	return Vault{
		Address: address, Written: address.Hex(), Name: v.GetName(), Symbol: v.GetSymbol(),
		Decimals: v.GetDecimals(), StartBlock: v.GetStartBlock(), Removed: v.GetRemoved(),
		Asset: Asset{
			Address: common.BytesToAddress(v.GetAsset().GetAddress()),
			Symbol:  v.GetAsset().GetSymbol(), Decimals: v.GetAsset().GetDecimals(),
		},
	}, nil
}
