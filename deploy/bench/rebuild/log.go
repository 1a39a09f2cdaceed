package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/local"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

const (
	chainID      = 31337
	vaults       = 6
	partners     = 50
	logsPerBlock = 200
	// retractEvery-th blocks are taken back and replaced by another branch: with
	// retractions and replacements, 1 % of the records are retracted ones.
	retractEvery = 100
	// blocksPerUnit share a transaction, as in a backfill.
	blocksPerUnit = 50
)

// described is what the cached log was made as; another description makes it anew.
type described struct {
	Version, Events, Users int
}

// openLog starts the embedded Kafka on the cached log, which it makes when it
// is not there.
func openLog(ctx context.Context, b *benchmark) (*local.Kafka, error) {
	dir := filepath.Join(b.Data, fmt.Sprintf("log-%d-%d", b.Events, b.Users))
	marker := filepath.Join(dir, "made.json")
	want := described{1, b.Events, b.Users}
	var made described
	text, err := os.ReadFile(marker)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil || made != want {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("remove the log that is not wanted: %w", err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make a folder for the log: %w", err)
		}
	}
	kafka, err := local.StartKafka(ctx, filepath.Join(dir, "kafka"))
	if err != nil || made == want {
		return kafka, err
	}
	bench.Say("writing a log of %d events of %d users", b.Events, b.Users)
	text, _ = json.Marshal(want) // three numbers
	g, err := newGenerator(kafka.Addr, b.Users)
	if err == nil {
		defer g.client.Close()
		err = g.write(ctx, b.Events)
	}
	if err == nil {
		err = os.WriteFile(marker, text, 0o644)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the log: %w", err), kafka.Close())
	}
	return kafka, nil
}

func kafkaConfig(addr string) chainlog.Config {
	c := chainlog.DefaultConfig()
	c.Brokers = []string{addr}
	return c
}

// generator writes the records that ingest would write of a busy protocol. It
// is the same each time.
type generator struct {
	client *kgo.Client
	rng    *rand.Rand
	users  int
	seq    uint64
	block  uint64
	vaults [vaults]vaultLife
	unit   []*event.Record
}

// vaultLife is what a vault must remember to say only what can be.
type vaultLife struct {
	deposits, swept, requests, funded, claimed uint64
}

func newGenerator(addr string, users int) (*generator, error) {
	c := kafkaConfig(addr)
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("generator"), kgo.RecordPartitioner(kgo.ManualPartitioner())}, c.Options()...)...)
	if err != nil {
		return nil, err
	}
	return &generator{client: client, rng: rand.New(rand.NewPCG(1, 2)), users: users}, nil
}

// write makes the topics and writes so many records, or a few more.
func (g *generator) write(ctx context.Context, events int) error {
	c := kafkaConfig("")
	if err := chainlog.EnsureTopics(ctx, kadm.NewClient(g.client), chainID, c.Topology()); err != nil {
		return err
	}
	for i := range vaults {
		a := vaultAt(i)
		g.put(&event.Record{Fact: &event.Record_Vault{Vault: &event.Vault{Address: a[:], StartBlock: 1, Name: fmt.Sprint("Vault ", i), Symbol: "V", Decimals: 18,
			Asset: &event.Token{Address: a[:], Symbol: "A", Decimals: 6}}}})
	}
	for int(g.seq) < events {
		for range blocksPerUnit {
			before := g.vaults
			from := len(g.unit)
			g.mine(0)
			if g.block%retractEvery == 0 {
				for _, r := range backwards(g.unit[from:]) {
					g.put(&event.Record{Retracts: r.GetSeq(), Fact: r.Fact})
				}
				g.block--
				g.vaults = before
				g.mine(1)
			}
		}
		if err := g.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

func backwards(records []*event.Record) []*event.Record {
	out := make([]*event.Record, 0, len(records))
	for i := len(records) - 1; i >= 0; i-- {
		out = append(out, records[i])
	}
	return out
}

func (g *generator) put(r *event.Record) {
	g.seq++
	r.Seq, r.ChainId = g.seq, chainID
	if r.Seq == 1 {
		r.Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
	}
	g.unit = append(g.unit, r)
}

// mine adds a block of the given branch.
func (g *generator) mine(branch uint64) {
	g.block++
	hash := hashOf(g.block, branch, 0)
	time := 1_700_000_000 + 12*g.block
	for i := range uint32(logsPerBlock) {
		vault := g.rng.IntN(vaults)
		topics, data, err := contracts.Encode(g.event(vault))
		if err != nil {
			panic(err) // the generator's own events
		}
		address, tx := vaultAt(vault), hashOf(g.block, branch, uint64(i)+1)
		l := &event.Log{Address: address[:], Data: data, BlockNumber: g.block, BlockHash: hash[:], BlockTime: time, TxHash: tx[:], TxIndex: i, LogIndex: i}
		for _, t := range topics {
			l.Topics = append(l.Topics, t.Bytes())
		}
		g.put(&event.Record{Fact: &event.Record_Log{Log: l}})
	}
	parent := hashOf(g.block-1, 0, 0)
	g.put(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: g.block, Hash: hash[:], ParentHash: parent[:], Time: time}}})
}

// event is the next thing that happens in a vault.
func (g *generator) event(n int) contracts.Event {
	v := &g.vaults[n]
	user := userAt(g.rng.IntN(g.users))
	number := func(i uint64) *big.Int { return new(big.Int).SetUint64(i) }
	amount := new(big.Int).Mul(number(1+g.rng.Uint64N(1_000_000_000)), big.NewInt(1_000_000_000))
	partner := uint32(0)
	if g.rng.IntN(2) == 0 {
		partner = 1 + uint32(g.rng.IntN(partners))
	}
	switch dice := g.rng.IntN(100); {
	case dice < 15 && v.deposits > 0:
		v.requests++
		return contracts.WithdrawalRequested{RequestIndex: number(v.requests - 1), Owner: user, PartnerID: partner, Receiver: user, Shares: amount, AssetsEstimate: amount}
	case dice < 27 && v.funded < v.requests:
		v.funded++
		return contracts.WithdrawalFunded{RequestIndex: number(v.funded - 1), Owner: ownerOf(n, v.funded-1, g.users), SettlementID: number(1), Shares: amount, Assets: amount}
	case dice < 38 && v.claimed < v.funded:
		v.claimed++
		owner := ownerOf(n, v.claimed-1, g.users)
		return contracts.WithdrawalClaimed{RequestIndex: number(v.claimed - 1), Owner: owner, Receiver: owner, Shares: amount, Assets: amount}
	case dice == 98:
		return contracts.NavUpdated{NavID: number(1), Updater: user, NavPerShare: amount, TotalAssets: amount, TotalSupply: amount}
	case dice == 99 && v.swept < v.deposits:
		from := v.swept + 1
		v.swept = v.deposits
		return contracts.DepositsSwept{SweepID: number(1), Custodian: user, FromDepositID: number(from), ToDepositID: number(v.swept), Assets: amount}
	}
	v.deposits++
	return contracts.DepositAccepted{DepositID: number(v.deposits), Owner: user, PartnerID: partner, Sender: user, Assets: amount, Shares: amount}
}

// ownerOf names somebody for a later event of a request; the fold takes the
// owner of a request from its first event.
func ownerOf(vault int, index uint64, users int) common.Address {
	return userAt(int((index*vaults + uint64(vault)) % uint64(users)))
}

// commit ends the unit.
func (g *generator) commit(ctx context.Context) error {
	g.unit[len(g.unit)-1].Boundary = true
	if err := g.client.BeginTransaction(); err != nil {
		return err
	}
	var failed error
	for _, r := range g.unit {
		out, err := chainlog.Encode(r)
		if err != nil {
			return err
		}
		g.client.Produce(ctx, out, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := g.client.Flush(ctx); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	g.unit = g.unit[:0]
	return g.client.EndTransaction(ctx, kgo.TryCommit)
}

func vaultAt(i int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa0000 + i))) }

// userAt scatters users over the addresses, as accounts are.
func userAt(i int) (a common.Address) {
	h := hashOf(uint64(i), 7, 7)
	copy(a[:], h[:])
	return a
}

// hashOf is a fast mixture: a log of millions needs many, and none of them has to be hard.
func hashOf(a, b, c uint64) (h common.Hash) {
	x := a*0x9e3779b97f4a7c15 ^ b*0xc2b2ae3d27d4eb4f ^ c*0x165667b19e3779f9
	for i := range 4 {
		x ^= x >> 31
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		binary.BigEndian.PutUint64(h[8*i:], x^x>>31)
	}
	return h
}
