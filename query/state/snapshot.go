package state

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed sql/*.sql
var files embed.FS

var sqlCursor, sqlBuilding, sqlFirstBlocks, sqlVaults = SQL(files, "sql/cursor"), SQL(files, "sql/building"),
	SQL(files, "sql/first_blocks"), SQL(files, "sql/vaults")

// SQL returns the query in a .sql file of a package.
func SQL(files embed.FS, name string) string {
	text, err := files.ReadFile(name + ".sql")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return string(text)
}

// Snapshot is the newest state of one generation that answers can be pinned to. Its fields never change; answers keep
// what they share with it.
type Snapshot struct {
	Generation int32
	Seq        uint64 // the end of the newest complete unit
	Block      uint64 // the newest indexed block
	Time       uint64 // of the newest block up to it that the generation does not skip, Unix seconds
	Rewrites   uint64 // how many units have retracted something so far
	First      uint64 // the first indexed block
	Vaults     []Vault
	// VaultsSeq is the seq of the newest record about a vault.
	VaultsSeq uint64
	// Absent are the vaults of the log that the generation has no data of.
	Absent []Vault
	// Partial: the first generation is still being built, and has events but no lists.
	Partial bool
	ChainID uint64
	Source  *Source

	touched *touched
	shared  sync.Map
}

// Shared returns what all answers at the snapshot share under a key. create creates it for the first of them.
func (s *Snapshot) Shared(key any, create func() any) any {
	if v, ok := s.shared.Load(key); ok {
		return v
	}
	v, _ := s.shared.LoadOrStore(key, create())
	return v
}

// Unchanged reports whether an answer about the newest block, made at a seq of a generation from rows with the given
// keys, is still right at the snapshot. It does not consider rows that lapse with time.
func (s *Snapshot) Unchanged(generation int32, seq uint64, keys []readmodel.TouchedKey) bool {
	return generation == s.Generation && (seq == s.Seq || s.touched.unchanged(generation, seq, s.Seq, keys))
}

// Kept reports whether what was true of a past block at a seq of a generation is still true.
func (s *Snapshot) Kept(generation int32, seq, block uint64) bool {
	return generation == s.Generation && (seq == s.Seq || s.touched.kept(generation, seq, s.Seq, block))
}

// Vault is a vault according to the newest record about it.
type Vault struct {
	// Seq is the seq of that record.
	Seq uint64
	// Absent: the generation has no logs of it.
	Absent bool
	// Removed: an operator removed it, and the next generation will not contain it.
	Removed    bool
	Address    common.Address
	Written    string // the address with its checksum
	Name       string
	Symbol     string
	Decimals   uint32
	Asset      Asset
	StartBlock uint64
	// Mapped is the mapping by which the generation has its logs. The newest record may have another one, which the
	// next generation uses.
	Mapped *mapping.Sources
}

// Addresses returns the addresses of vaults, in order.
func Addresses(vaults []Vault) []common.Address {
	out := make([]common.Address, len(vaults))
	for i := range vaults {
		out[i] = vaults[i].Address
	}
	return out
}

// Asset is the token that a vault holds.
type Asset struct {
	Address  common.Address
	Symbol   string
	Decimals uint32
}

// unlikeAssets reports whether a sum over vaults would add units of different size.
func (s *Snapshot) unlikeAssets() bool {
	return s != nil && slices.ContainsFunc(s.Vaults,
		func(v Vault) bool { return v.Asset.Decimals != s.Vaults[0].Asset.Decimals })
}

// empty is the error of a generation that has nothing to serve.
func empty(database string) error {
	return plainError{database + " holds no indexed block yet: ingest and project must index one first", true}
}

type cursorRow struct {
	List     string   `ch:"list"`
	Seq      uint64   `ch:"seq"`
	Block    uint64   `ch:"block"`
	Time     uint32   `ch:"ts"`
	Rewrites uint64   `ch:"rewrites"`
	ID       uint64   `ch:"id"` // of a unit that retracts: the first block about which an answer may change
	Touched  []string `ch:"touched"`
}

// look reads the cursor of a generation, and calls see with what each unit after seq after touched, in order.
func look(ctx context.Context, source *Source, after uint64,
	see func(seq, ancestor uint64, keys []readmodel.TouchedKey)) (*Snapshot, error) {
	var rows []cursorRow
	if err := source.Select(ctx, &rows, sqlCursor, number("after", after)); err != nil {
		return nil, fmt.Errorf("read the cursor of %s: %w", source.Database, err)
	}
	var at *cursorRow
	slices.SortFunc(rows, func(a, b cursorRow) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range rows {
		if rows[i].List != "cursor" {
			continue
		}
		if at != nil {
			return nil, Wrong("%s has several cursors: rebuild it with `navlog projection rebuild`", source.Database)
		}
		at = &rows[i]
	}
	if at == nil || at.Time == 0 { // a block that the generation skips has no time of its own
		return nil, empty(source.Database)
	}
	for _, r := range rows {
		if r.List != "touched" {
			continue
		}
		ancestor := readmodel.Never
		if r.ID > 0 {
			ancestor = r.ID - 1
		}
		keys := make([]readmodel.TouchedKey, len(r.Touched))
		for i, text := range r.Touched {
			copy(keys[i][:], text)
		}
		see(r.Seq, ancestor, keys)
	}
	return &Snapshot{Generation: source.ID, Seq: at.Seq, Block: at.Block, Time: uint64(at.Time), Rewrites: at.Rewrites,
		Source: source}, nil
}

// lookBuilding reads the progress of a generation that has no lists yet.
func lookBuilding(ctx context.Context, source *Source) (*Snapshot, error) {
	var rows []struct {
		Seq   uint64 `ch:"last_seq"`
		Block uint64 `ch:"newest_block"`
		Time  uint32 `ch:"newest_ts"`
		First uint64 `ch:"first_block"`
	}
	if err := source.Select(ctx, &rows, sqlBuilding, nil); err != nil {
		return nil, fmt.Errorf("read the progress of %s: %w", source.Database, err)
	}
	if len(rows) == 0 || rows[0].Block == 0 && rows[0].Time == 0 {
		return nil, empty(source.Database)
	}
	r := rows[0]
	return &Snapshot{Generation: source.ID, Seq: r.Seq, Block: r.Block, Time: uint64(r.Time), First: r.First,
		Partial: true, Source: source}, nil
}

func number(name string, value uint64) clickhouse.Parameters {
	return clickhouse.Parameters{name: strconv.FormatUint(value, 10)}
}

// read completes a snapshot with the first block and the vaults.
func (s *Snapshot) read(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() (err error) {
		if !s.Partial {
			s.First, err = firstBlock(ctx, s.Source)
		}
		return err
	})
	group.Go(func() error {
		var rows []vaultRecord
		if err := s.Source.Select(ctx, &rows, sqlVaults, number("seq", s.Seq)); err != nil {
			return fmt.Errorf("read the vaults of %s: %w", s.Source.Database, err)
		}
		var err error
		if s.Vaults, s.Absent, err = s.fold(rows); err != nil {
			return fmt.Errorf("read the vaults of %s: %w", s.Source.Database, err)
		}
		if len(rows) > 0 {
			s.VaultsSeq = rows[len(rows)-1].Seq
		}
		return nil
	})
	return group.Wait()
}

// fewBlocks is how many rows of the list of blocks are read first: usually the first one is live.
const fewBlocks = 16

// firstBlock returns the first indexed block, or 0 if there is none. All rows of one height are adjacent, and those
// of the last height may have been cut off by the limit.
func firstBlock(ctx context.Context, source *Source) (uint64, error) {
	for few := uint64(fewBlocks); ; few *= 64 {
		var rows []struct {
			Block uint64 `ch:"block"`
			Sign  int8   `ch:"sign"`
		}
		if err := source.Select(ctx, &rows, sqlFirstBlocks, number("few", few)); err != nil {
			return 0, fmt.Errorf("read the first block of %s: %w", source.Database, err)
		}
		live := map[uint64]int{}
		for _, r := range rows {
			live[r.Block] += int(r.Sign)
		}
		full := uint64(len(rows)) == few
		for _, r := range rows {
			if full && r.Block == rows[len(rows)-1].Block {
				break
			}
			if live[r.Block] > 0 {
				return r.Block, nil
			}
		}
		if !full {
			return 0, nil
		}
	}
}

type vaultRecord struct {
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"`
	Retracts uint64 `ch:"retracts"`
	Passed   bool   `ch:"passed"`
	Payload  string `ch:"payload"`
}

// fold folds the records about vaults, which are in the order of the log: the newest live record of an address
// counts, and one that removes the vault keeps its name. But the generation keeps the mapping that it had first. It
// returns the vaults that the generation has, and the absent ones, both sorted by start block and address.
func (s *Snapshot) fold(records []vaultRecord) (here, absent []Vault, err error) {
	gone := make(map[uint64]bool)
	for _, r := range records {
		if r.Sign < 0 {
			gone[r.Retracts] = true
		}
	}
	newest, has := make(map[common.Address]Vault), make(map[common.Address]bool)
	for _, r := range records {
		v, err := s.decode(r.Payload)
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
		v.Mapped = s.Source.mapped.Of(v.Address)
		if has[v.Address] {
			here = append(here, v)
		} else {
			v.Absent = true
			absent = append(absent, v)
		}
	}
	return sorted(here), sorted(absent), nil
}

// VaultsAt returns the vaults that the log had at a seq, including those that had left, sorted by start block and
// address. The result is the same at every later snapshot, unless an operator's decision retracts one of these
// records.
func (s *Snapshot) VaultsAt(ctx context.Context, seq uint64) ([]Vault, error) {
	var records []vaultRecord
	if err := s.Source.Select(ctx, &records, sqlVaults, number("seq", s.Seq)); err != nil {
		return nil, fmt.Errorf("read the vaults at record %d: %w", seq, err)
	}
	records = slices.DeleteFunc(records, func(r vaultRecord) bool { return r.Sign > 0 && r.Seq > seq })
	here, absent, err := s.fold(records)
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

func (s *Snapshot) decode(payload string) (Vault, error) {
	var record event.Record
	if err := proto.Unmarshal([]byte(payload), &record); err != nil {
		return Vault{}, fmt.Errorf("its payload cannot be decoded: %w; rebuild the generation with `navlog projection "+
			"rebuild`", err)
	}
	v := record.GetVault()
	if v == nil || len(v.GetAddress()) != common.AddressLength {
		return Vault{}, errors.New("its payload names no vault; rebuild the generation with `navlog projection rebuild`")
	}
	if record.GetChainId() != s.ChainID {
		return Vault{}, plainError{text: fmt.Sprintf("it is of chain %d and this program serves chain %d: configure the "+
			"read models of its chain", record.GetChainId(), s.ChainID)}
	}
	address := common.BytesToAddress(v.GetAddress())
	if err := s.Source.mapped.Apply(v); err != nil {
		return Vault{}, fmt.Errorf("%w: start a newer navlog", err)
	}
	return Vault{
		Address: address, Written: address.Hex(), Name: v.GetName(), Symbol: v.GetSymbol(),
		Decimals: v.GetDecimals(), StartBlock: v.GetStartBlock(), Removed: v.GetRemoved(),
		Asset: Asset{
			Address: common.BytesToAddress(v.GetAsset().GetAddress()),
			Symbol:  v.GetAsset().GetSymbol(), Decimals: v.GetAsset().GetDecimals(),
		},
	}, nil
}
