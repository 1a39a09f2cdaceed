// Package mapped tests the whole of navlog with a vault that no preset knows: its mapping is a file, its events have
// their own names and come from two contracts.
package mapped

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	chainID   = 31337
	partnerID = 7
)

// shop is the mapping: deposits are logged by a separate contract and get their shares from a log of the vault, and one
// log pays requests.
const shop = `preset: shop
sources: {vault: required, desk: required}
events:
  - on: Bought(address indexed who, uint256 indexed no, uint32 indexed ref, uint256 paid)
    source: desk
    emit: deposit
    set: {key: $no, owner: $who, partner: $ref, sender: $who, assets: $paid}
    with:
      on: Minted(address indexed to, uint256 indexed no, uint256 indexed batch, uint256 amount)
      match: {to: $who, no: $no}
      set: {shares: $amount}
  - on: Asked(address indexed who, uint256 indexed no, uint32 indexed ref, uint256 units, uint256 worth)
    emit: requested
    set: {key: $no, owner: $who, partner: $ref, receiver: $who, shares: $units, estimate: $worth}
  - on: Paid(address indexed who, uint256 indexed no, address indexed to, uint256 units, uint256 sum)
    emit:
      - {funded: {key: $no, owner: $who, shares: $units, assets: $sum}}
      - {claimed: {key: $no, owner: $who, receiver: $to, shares: $units, assets: $sum}}
  - on: Marked(uint256 indexed a, uint256 indexed b, uint256 indexed c, uint256 price, uint256 worth, uint256 units)
    emit: valuation
    set: {nav: $price, total_assets: $worth, total_supply: $units}
nav: {from: valuation}
`

// emitter is a contract that emits its input as a log: four topics, and then the data.
var emitter = hexutil.MustDecode("0x601b600c600039601b6000f3" + "6080360380608060003760603560403560203560003584" +
	"6000a400")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// system is all programs on the test's engines, and the vault's two contracts.
type system struct {
	t           *testing.T
	kafka       chainlog.Config
	ch          readmodel.Config
	pool        *pgxpool.Pool
	node        string
	client      *ethclient.Client
	account     common.Address
	vault, desk common.Address
	config      ingest.Config
	ingest      *ingest.Ingest
	project     *projections.Projections
	api, key    string // key of the partner

	mu     sync.Mutex
	bodies []string // of webhooks
}

// systems counts the systems of this process: tests that run at the same time share ClickHouse.
var systems atomic.Int32

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, kafka: chainlog.DefaultConfig(), ch: readmodel.DefaultConfig()}
	s.kafka.Brokers = enginetest.Kafka(t)
	s.ch.Addr, s.ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("m%d_%d", os.Getpid(), systems.Add(1))
	conn, err := s.ch.Open("")
	must(t, err)
	t.Cleanup(func() {
		for id := range int32(5) {
			if err := conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+s.ch.Database(id)); err != nil {
				t.Error(err)
			}
		}
		conn.Close()
	})
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	s.pool, err = registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(s.pool.Close)
	s.node = enginetest.Anvil(t, engines.AnvilOptions{SlotsInEpoch: 4}).URL
	s.client, err = ethclient.DialContext(t.Context(), s.node)
	must(t, err)
	t.Cleanup(s.client.Close)
	var accounts []common.Address
	must(t, s.client.Client().CallContext(t.Context(), &accounts, "eth_accounts"))
	s.account = accounts[0]
	s.vault, s.desk = s.send(nil, emitter).ContractAddress, s.send(nil, emitter).ContractAddress
	return s
}

// send sends a transaction and has it mined.
func (s *system) send(to *common.Address, data []byte) *types.Receipt {
	s.t.Helper()
	var hash common.Hash
	fields := map[string]any{"from": s.account, "data": hexutil.Bytes(data), "gas": hexutil.Uint64(3_000_000)}
	if to != nil {
		fields["to"] = to
	}
	must(s.t, s.client.Client().CallContext(s.t.Context(), &hash, "eth_sendTransaction", fields))
	var receipt *types.Receipt
	wait.Until(s.t, func() (err error) {
		receipt, err = s.client.TransactionReceipt(s.t.Context(), hash)
		return err
	})
	if receipt.Status != types.ReceiptStatusSuccessful {
		s.t.Fatalf("transaction %s failed", hash)
	}
	return receipt
}

// emission is a log for a contract to emit.
type emission struct {
	from common.Address
	data []byte
}

// emits returns a log with three indexed parameters; the others follow.
func emits(from common.Address, signature string, words ...any) emission {
	data := crypto.Keccak256([]byte(signature))
	for _, w := range words {
		switch w := w.(type) {
		case common.Address:
			data = append(data, common.BytesToHash(w[:]).Bytes()...)
		case int:
			data = append(data, common.BigToHash(big.NewInt(int64(w))).Bytes()...)
		}
	}
	return emission{from, data}
}

// transact emits all of these logs in one transaction: it creates a contract whose code calls the emitters.
func (s *system) transact(all ...emission) {
	s.t.Helper()
	push2 := func(n int) []byte { return binary.BigEndian.AppendUint16([]byte{0x61}, uint16(n)) }
	const each = 3 + 3 + 2 + 1 + 2 + 2 + 3 + 2 + 2 + 21 + 1 + 1 + 1 // bytes of code for a call
	at := each*len(all) + 1
	var code, rest []byte
	for _, e := range all {
		size := push2(len(e.data))
		code = slices.Concat(code, size, push2(at+len(rest)), []byte{0x60, 0, 0x39}, // CODECOPY to 0
			[]byte{0x60, 0, 0x60, 0}, size, []byte{0x60, 0, 0x60, 0, 0x73}, e.from[:], []byte{0x5a, 0xf1, 0x50}) // CALL, POP
		rest = append(rest, e.data...)
	}
	s.send(nil, slices.Concat(code, []byte{0}, rest))
}

func (s *system) start() { s.programs(s.shop(shop)) }

// shop returns the configuration of the vault whose mapping is a file.
func (s *system) shop(mapping string) vaults.Config {
	file := filepath.Join(s.t.TempDir(), "shop.yaml")
	must(s.t, os.WriteFile(file, []byte(mapping), 0o600))
	six := uint8(6)
	return vaults.Config{Address: s.vault.Hex(), StartBlock: 1, Name: "Shop", Symbol: "SHOP", Decimals: &six,
		Mapping: file, Sources: map[string]vaults.SourceConfig{"desk": {Address: s.desk.Hex()}},
		Asset: vaults.AssetConfig{Address: common.Address{0xaa}.Hex(), Symbol: "USD", Decimals: &six}}
}

// programs starts all programs, with these vaults in the configuration of ingest.
func (s *system) programs(indexed ...vaults.Config) {
	t := s.t
	s.config = ingest.DefaultConfig()
	s.config.ID, s.config.PollInterval = chainID, 50*time.Millisecond
	s.config.RPC = []rpc.Endpoint{{URL: s.node}}
	s.config.Vaults = indexed
	must(t, s.config.Validate())
	log := slog.New(slog.DiscardHandler)
	s.ingest = ingest.New(s.config, s.kafka, s.pool, prometheus.NewRegistry(), log)
	s.run(s.ingest.Run)
	s.project = projections.New(projections.DefaultConfig(), chainID, s.kafka, s.ch, s.pool, prometheus.NewRegistry(), log)
	s.run(s.project.Run)
	web := query.DefaultConfig()
	web.Listen, web.PublicRateLimit, web.PublicEngineTime = "127.0.0.1:0", 0, 0
	web.PartnerRateLimit = 1_000_000
	web.StatementKey, web.StatementConfirmations = base64.StdEncoding.EncodeToString(make([]byte, 32)), 0
	noURL := func(context.Context, string) (string, error) { return "", errors.New("no URL is in use") }
	serve := query.New(web, chainID, s.ch, s.pool, noURL, prometheus.NewRegistry(), log)
	s.run(serve.Run)
	server, err := receiver.Serve(t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a partial event does not match, and is sent again
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
	}))
	must(t, err)
	t.Cleanup(server.Close)
	made, err := partners.Make(t.Context(), s.pool, partnerID, "seven", "https://"+server.Address+"/")
	must(t, err)
	g, err := guard.New(guard.Config{AllowNetworks: []string{partners.Network}})
	must(t, err)
	webhooks := dispatch.DefaultConfig()
	webhooks.ChainID, webhooks.CAFile = chainID, server.CAFile
	s.run(dispatch.New(webhooks, s.kafka, s.pool, partners.Sealer(), g, prometheus.NewRegistry(), log).Run)
	wait.Until(t, s.project.Ready)
	wait.Until(t, serve.Ready)
	s.api, s.key = "http://"+serve.Addr()+"/api/v1", made.APIKey
}

// run runs a program until the end of the test.
func (s *system) run(program func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// ask returns the data of a response. Requests whose path contains "partner" are sent with the partner's key.
func (s *system) ask(path string) (data any, err error) {
	r, err := s.get(path)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct{ Data any }
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s, %w, %v", path, r.Status, err, answer)
	}
	return answer.Data, nil
}

func (s *system) get(path string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.api+path, nil)
	if err != nil {
		return nil, err
	}
	if strings.Contains(path, "partner") {
		q.Header.Set("X-Api-Key", s.key)
	}
	return http.DefaultClient.Do(q)
}

// says waits until a response contains all of the words.
func (s *system) says(path string, words ...string) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		data, err := s.ask(path)
		if err != nil {
			return err
		}
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(string(text), word) {
				return fmt.Errorf("%s has no %s: %s", path, word, text)
			}
		}
		return nil
	})
}

// noRouter checks that a deployment without a router responds with 404 and a message.
func (s *system) noRouter() {
	s.t.Helper()
	r, err := s.get("/partner/router")
	must(s.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	must(s.t, err)
	if r.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "NOT_FOUND") ||
		!strings.Contains(string(body), "no deposit router") {
		s.t.Errorf("the router is %s: %s", r.Status, body)
	}
}

// kinds checks the kinds of the vault's contract events, oldest first.
func (s *system) kinds(want ...string) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		data, err := s.ask("/events?pageSize=100")
		if err != nil {
			return err
		}
		var got []string
		for _, e := range data.([]any) {
			got = append(got, e.(map[string]any)["kind"].(string))
		}
		if slices.Reverse(got); !slices.Equal(got, want) {
			return fmt.Errorf("the events are %q, want %q", got, want)
		}
		return nil
	})
}

// verify compares the read model with the log, using the oracle, and the log with the chain.
func (s *system) verify() {
	s.t.Helper()
	wait.Until(s.t, func() error {
		r, err := verify.Verify(s.t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
		if err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return fmt.Errorf("%w\n%s", err, r)
		}
		if len(r.Quarantined) != 1 { // the deposit without its companion
			return fmt.Errorf("quarantined are %v", r.Quarantined)
		}
		return nil
	})
}

// webhook waits for an event of the partner.
func (s *system) webhook(words ...string) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, body := range s.bodies {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(body, word) }) {
				return nil
			}
		}
		return fmt.Errorf("no webhook has %q: %q", words, s.bodies)
	})
}

// TestMappedVault: a vault whose mapping is a file goes through ingest, projections, the API and webhooks, with a
// reorganisation; the oracle and the chain agree with the read model.
func TestMappedVault(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	alice, bob := common.Address{0xb1}, common.Address{0xb2}
	bought := func(who common.Address, no, ref, paid, got int) []emission {
		return []emission{emits(s.desk, "Bought(address,uint256,uint32,uint256)", who, no, ref, paid),
			emits(s.vault, "Minted(address,uint256,uint256,uint256)", who, no, 1, got)}
	}
	// Given a history that is backfilled, in which one deposit lacks its companion.
	s.transact(bought(alice, 1, partnerID, 5_000_000, 4_000_000)...)
	s.transact(emits(s.desk, "Bought(address,uint256,uint32,uint256)", bob, 9, partnerID, 1),
		emits(s.vault, "Unheard(uint256)", 1, 2, 3))
	s.transact(emits(s.vault, "Marked(uint256,uint256,uint256,uint256,uint256,uint256)", 1, 2, 3,
		1_250_000_000_000_000_000, 5_000_000, 4_000_000))
	must(t, devchain.Mine(t.Context(), s.node, 20))
	s.start()
	s.says("/users/"+alice.Hex(), `"totalDeposited":"5000000"`)
	s.webhook("deposit", s.vault.Hex(), alice.Hex(), `"5000000"`, `"4000000"`)

	// When it continues at the head, with two deposits in a transaction and a log with two effects.
	s.transact(slices.Concat(bought(alice, 2, 0, 1_000_000, 800_000), bought(bob, 3, partnerID, 2_000_000, 1_600_000))...)
	s.transact(emits(s.vault, "Asked(address,uint256,uint32,uint256,uint256)", alice, 0, partnerID, 4_000_000, 5_000_000))
	s.transact(emits(s.vault, "Paid(address,uint256,address,uint256,uint256)", alice, 0, bob, 4_000_000, 5_100_000))
	s.says("/users/"+alice.Hex(), `"totalDeposited":"6000000"`, `"totalWithdrawn":"5100000"`)
	s.says("/vaults", `"Shop"`, `"SHOP"`, `"USD"`, `"navPerShare":"1250000000000000000"`)
	s.kinds("Bought", "Bought", "Marked", "Bought", "Bought", "Asked", "Paid", "Paid")

	s.says("/vaults/"+s.vault.Hex(),
		`"capabilities":{"deposits":true,"expiry":false,"nav":true,"partners":true,"queue":true,"settlement":true,"sweeps":false}`)
	s.says("/settlement/summary", `"depositsToSweep":{"count":null,"totalAmount":null}`,
		`"withdrawalsToFund":{"count":0,"totalAmount":"0"}`)
	s.noRouter()

	// And the newest blocks are replaced by others.
	must(t, devchain.Reorg(t.Context(), s.node, 2))
	s.kinds("Bought", "Bought", "Marked", "Bought", "Bought")
	s.says("/users/"+alice.Hex(), `"totalWithdrawn":"0"`)
	s.verify()
	s.transact(emits(s.vault, "Asked(address,uint256,uint32,uint256,uint256)", bob, 0, partnerID, 1_600_000, 2_000_000))

	// Then the partner receives the events that stayed in the chain, and all totals are correct.
	must(t, devchain.Mine(t.Context(), s.node, 20))
	s.webhook("withdrawal", s.vault.Hex(), bob.Hex(), `"1600000"`)
	s.webhook("deposit", bob.Hex(), `"2000000"`)
	s.verify()
	s.mu.Lock()
	defer s.mu.Unlock()
	if said := strings.Join(s.bodies, "\n"); strings.Count(said, alice.Hex()) != 1 {
		t.Errorf("of alice one deposit is the partner's and final:\n%s", said)
	}
}
