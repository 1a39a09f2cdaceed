package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
)

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// refused runs an ingest that must end with an error that contains all the words.
func (r *rig) refused(words ...string) {
	r.t.Helper()
	err := r.start().wait()
	if err == nil {
		r.t.Fatal("ingest ended without an error")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.t.Errorf("the error lacks %q: %v", w, err)
		}
	}
}

func (r *rig) admin() *kadm.Client {
	r.t.Helper()
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	r.t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// emptied deletes a topic and creates it again.
func (r *rig) emptied(topic string) {
	r.t.Helper()
	_, err := r.admin().DeleteTopics(r.ctx, topic)
	r.must(err)
	r.eventually("deletion of "+topic, func() bool {
		details, err := r.admin().ListTopics(r.ctx)
		r.must(err)
		return !details.Has(topic)
	})
	r.must(chainlog.EnsureTopics(r.ctx, r.admin(), r.config.ID, r.kafka.Topology()))
}

// indexed is a rig whose log is written and whose ingest has stopped.
func indexed(t *testing.T) *rig {
	r := newRig(t, kfake)
	r.steps(8)
	r.index()
	return r
}

func TestAnotherChainIsRefused(t *testing.T) {
	sequential(t)
	r := indexed(t)
	node := r.config.RPC
	fresh := enginetest.Anvil(t, engines.AnvilOptions{ChainID: r.config.ID, Timestamp: 1_600_000_000})
	other := *r
	other.url = fresh.URL
	other.deployAgain() // the vaults exist there too: only the genesis is wrong

	r.config.RPC = rpc.Endpoints(fresh.URL)
	r.refused("genesis", "correct chain.rpc", "delete chain.")

	// If the second of two endpoints is on another chain, this is detected at the start.
	r.config.RPC = rpc.Endpoints(r.url, fresh.URL)
	r.refused("chain.rpc[1]", "genesis", "remove the wrong one")
	r.verify() // nothing was appended

	r.config.RPC, r.config.ID = node, 987_654
	r.refused("serves chain", "chain.id is 987654")
	topics, err := r.admin().ListTopics(r.ctx)
	r.must(err)
	if topic := chainlog.LogTopic(r.config.ID); topics.Has(topic) {
		t.Errorf("%s was created", topic)
	}
}

// The URL of the only endpoint may serve another chain without a failed call, as behind a load balancer with a wrong
// backend. This ends ingest like such a configuration: nothing is appended, and the log is not frozen.
func TestEndpointThatServesAnotherChainFromNowOn(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	node := r.throughProxy(honest)
	for says, id := range map[string]uint64{"serves chain": 1 + r.config.ID, "genesis": r.config.ID} {
		p := r.start()
		p.caughtUp()
		fresh := enginetest.Anvil(t, engines.AnvilOptions{ChainID: id, Timestamp: 1_600_000_000})
		r.must(devchain.Mine(r.ctx, fresh.URL, r.height()+10))
		node.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
			var answer struct{ Result json.RawMessage }
			err := json.Unmarshal(askedAt(fresh.URL, body), &answer)
			return answer.Result, err, true
		})
		p.until("an end or a freeze", func(st status.Status) bool {
			select {
			case <-p.done:
				return true
			default:
				return st.State == status.Frozen
			}
		})
		if st := p.Status(); st.State == status.Frozen {
			t.Fatalf("the log is frozen: %s", st.Reason)
		}
		if err := p.wait(); !rpc.Refused(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("ingest ends with %v", err)
		}
		node.use(honest)
		r.verify()
		r.steps(3)
	}
	r.index()
}

func TestVaultWithoutCodeIsRefused(t *testing.T) {
	r := newRig(t, kfake)
	const withoutCode = "0x000000000000000000000000000000000000dEaD"
	r.config.Vaults[1].Address = withoutCode
	r.refused("vault "+withoutCode+" has no code on chain", "check chain.vaults and chain.rpc")
}

// A node that is still syncing has no code at a head below the vault's start block, which proves nothing
// about the vault.
func TestVaultAboveTheHeadOfASyncingNode(t *testing.T) {
	r := newRig(t, kfake)
	genesis := headIs(r.blockAt("0x0"), "")
	r.throughProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		if method == "eth_getCode" {
			return "0x", nil, true
		}
		return genesis(method, params, truth)
	})
	if err := r.start().wait(); err == nil || rpc.Refused(err) ||
		!strings.Contains(err.Error(), "wait until the node has synced") {
		t.Errorf("ingest ends with %v", err)
	}
}

// If an endpoint fails when the code of a vault is read, the next one is used; if all fail, the error is theirs.
func TestVaultsAreLookedForAtEachEndpoint(t *testing.T) {
	r := newRig(t, kfake)
	var asked atomic.Int64
	fails := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if bytes.Contains(body, []byte("eth_getCode")) {
			asked.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(realAnswer(r, body))
	}))
	t.Cleanup(fails.Close)
	r.config.RPC = rpc.Endpoints(fails.URL, r.url)
	r.index()
	if asked.Load() == 0 {
		t.Error("the first endpoint was not called")
	}
	r.config.RPC = rpc.Endpoints(fails.URL)
	if err := r.start().wait(); err == nil || !strings.Contains(err.Error(), "look for the code of vault") ||
		!strings.Contains(err.Error(), "502") {
		t.Errorf("if no endpoint responds, ingest ends with %v", err)
	}
}

// A contract that is not a vault has no asset, so its amounts would mean nothing.
func TestContractThatIsNoVaultIsRefused(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Vaults[1].Address = r.contracts.Router.Hex()
	r.refused("decimals()", "is it an ERC-4626 vault?")
}

// A vault without a name, or with one of white space, is indexed; the configured name takes precedence over the
// contract's.
func TestVaultNames(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Vaults[2].Name = "Our own name"
	parsed := contracts.VaultABI()
	blank, err := parsed.Methods["name"].Outputs.Pack("\t \u00a0\n")
	r.must(err)
	names := selectors("name()", "symbol()")
	r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_call" || !names(string(params[0])) {
			return nil, nil, false
		}
		if strings.Contains(string(params[0]), strings.ToLower(r.config.Vaults[1].Address)) {
			return hexutil.Bytes(blank), nil, true
		}
		return "0x", nil, true
	})
	r.follow()
	all := r.verify()
	for i, v := range all[:2] {
		if got := v.GetVault(); got.GetName() != r.contracts.Vaults[i].Address.Hex() || got.GetSymbol() != "" ||
			got.GetDecimals() == 0 {
			t.Errorf("the record of a vault without name is %v", got)
		}
	}
	if got := all[2].GetVault().GetName(); got != "Our own name" {
		t.Errorf("the configured name is recorded as %q", got)
	}
}

// An address may stand for several nodes, one of which has not reached the block that created the vault: it has no code
// and no output at its newest block, which proves nothing
// about the vault.
func TestVaultIsReadBehindALoadBalancer(t *testing.T) {
	r := newRig(t, kfake)
	var asked atomic.Int64
	r.config.RPC = rpc.Endpoints(r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any,
		error, bool) {
		switch {
		case method != "eth_call" && method != "eth_getCode":
		case !strings.Contains(string(params[1]), "blockHash"):
			return "0x", nil, true
		case asked.Add(1)%5 == 1 && asked.Load() < 10:
			return nil, errors.New("header for hash not found"), true
		}
		return nil, nil, false
	}).URL, r.url)
	r.start().caughtUp()
	for _, record := range r.verify()[:len(r.contracts.Vaults)] {
		v := record.GetVault()
		if common.IsHexAddress(v.GetName()) || v.GetSymbol() == "" || v.GetDecimals() == 0 || v.GetAsset().GetSymbol() == "" {
			t.Errorf("the record of a vault is %v", v)
		}
	}
}

// With chain.agreement 2, what one endpoint returns about a vault is not recorded before another one returns the same.
func TestVaultIsReadAtTwoEndpoints(t *testing.T) {
	r := newRig(t, kfake)
	decimals := selectors("decimals()")
	wrongNode := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return common.Hash{31: 3}, nil, method == "eth_call" && decimals(string(params[0]))
	})
	r.config.RPC, r.config.Agreement = rpc.Endpoints(wrongNode.URL, r.url), 2
	p := r.start()
	p.until("disagreement", func(st status.Status) bool { return strings.Contains(st.Reason, rpc.ErrDisagree.Error()) })
	if all, _ := r.log(); len(all) > 0 {
		t.Errorf("%v is recorded", all[0])
	}
	wrongNode.use(honest)
	p.caughtUp()
	r.verify()
}

// A contract may return any bytes as its name, and any number of them; the vault's record holds the displayable part.
func TestVaultNamesOfAnyBytes(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	parsed := contracts.VaultABI()
	answer, err := parsed.Methods["name"].Outputs.Pack("\xff\xfe\x00" + strings.Repeat("é", 500_000))
	r.must(err)
	names := selectors("name()", "symbol()")
	r.config.RPC = rpc.Endpoints(r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any,
		error, bool) {
		return hexutil.Bytes(answer), nil, method == "eth_call" && names(string(params[0]))
	}).URL)
	r.start().caughtUp()
	want := "\uFFFD\uFFFD" + strings.Repeat("é", 125) // 256 bytes: the rest is cut off
	if got := r.verify()[0].GetVault(); got.GetName() != want || got.GetSymbol() != want ||
		got.GetAsset().GetSymbol() != want {
		t.Errorf("the record is %v", got)
	}
}

func TestLoweredStartBlockIsRefused(t *testing.T) {
	sequential(t)
	r := indexed(t)
	r.config.Vaults[1].StartBlock--
	r.config.Vaults[2].StartBlock -= 2
	r.refused("start block of vault "+r.config.Vaults[1].Address, "start block of vault "+r.config.Vaults[2].Address,
		"lowered", "projection rebuild")
	r.config.Vaults[1].StartBlock += 9 // a raised start block is ignored
	r.config.Vaults[2].StartBlock += 9
	r.follow()
	r.config.Vaults[1].StartBlock -= 8
	r.verify()
}

func TestTopicsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	sequential(t)
	t.Run("log without cursor", func(t *testing.T) {
		r := indexed(t)
		r.emptied(chainlog.CursorTopic(r.config.ID))
		r.refused("cursor is empty", "restore both topics")
	})
	t.Run("cursor without log", func(t *testing.T) {
		r := indexed(t)
		r.emptied(chainlog.LogTopic(r.config.ID))
		r.refused("log is empty", "restore both topics")
	})
	t.Run("cursor behind the log", func(t *testing.T) {
		r := indexed(t)
		old := r.cursor()
		r.steps(3)
		r.index()
		r.writeCursor(mustMarshal(t, old))
		r.refused("ends with seq", "restore both from the same backup")
	})
	t.Run("cursor of another log", func(t *testing.T) {
		r := indexed(t)
		other := r.cursor()
		other.LogId = make([]byte, 16)
		r.writeCursor(mustMarshal(t, other))
		r.refused("belongs to log 00000000000000000000000000000000")
	})
}

func TestCorruptRecordsAreRefused(t *testing.T) {
	sequential(t)
	t.Run("in the log", func(t *testing.T) {
		r := indexed(t)
		r.produce(&kgo.Record{Topic: chainlog.LogTopic(r.config.ID), Value: []byte("this is no protobuf")})
		r.refused("record at offset", "is corrupt", "restore the topic")
	})
	t.Run("a hole in the log", func(t *testing.T) {
		r := indexed(t)
		record := writer.BlockFact(&rpc.Header{Number: 1})
		record.Seq, record.ChainId = r.cursor().GetSeq()+2, r.config.ID
		r.produce(&kgo.Record{Topic: chainlog.LogTopic(r.config.ID), Value: mustMarshal(t, record)})
		r.refused("records were lost")
	})
	t.Run("in the cursor topic", func(t *testing.T) {
		r := indexed(t)
		r.writeCursor([]byte("this is no protobuf"))
		r.refused("record at offset", "cursor", "is corrupt")
	})
}

func TestTopicWithRetentionIsRefused(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		admin, topic := r.admin(), chainlog.LogTopic(r.config.ID)
		r.must(chainlog.EnsureTopics(r.ctx, admin, r.config.ID, r.kafka.Topology()))
		week := "604800000"
		answers, err := admin.AlterTopicConfigs(r.ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &week}}, topic)
		r.must(err)
		_, err = answers.On(topic, nil)
		r.must(err)
		// A controller acknowledges a change that the brokers learn a moment later.
		r.eventually("retention of a week", func() bool {
			described, err := admin.DescribeTopicConfigs(r.ctx, topic)
			r.must(err)
			config, err := described.On(topic, nil)
			r.must(err)
			return slices.ContainsFunc(config.Configs,
				func(c kadm.Config) bool { return c.Key == "retention.ms" && c.MaybeValue() == week })
		})
		r.refused("retention.ms", week, "must have \"-1\"", "kafka-configs.sh --bootstrap-server HOST:PORT --alter")
	})
}

func TestUnreachableEngines(t *testing.T) {
	const port = "127.0.0.1:1" // no server listens there
	t.Run("node", func(t *testing.T) {
		r := newRig(t, kfake)
		r.config.RPC = rpc.Endpoints("http://" + port)
		r.refused("no endpoint of chain.rpc answers", port)
	})
	t.Run("Kafka", func(t *testing.T) {
		r := newRig(t, func(testing.TB) []string { return []string{port} })
		r.refused("reach Kafka at", port, "kafka.brokers")
	})
}

// The topics of a real ingest are refused if the cursor, or a block of the log's tail, is impossible.
func TestImpossibleRecordsAreRefused(t *testing.T) {
	sequential(t)
	t.Run("cursor", func(t *testing.T) {
		r := indexed(t)
		broken := r.cursor()
		broken.GenesisHash = broken.GetGenesisHash()[:31]
		r.writeCursor(mustMarshal(t, broken))
		r.refused("chain."+fmt.Sprint(r.config.ID)+".cursor", "genesis hash 31", "restore")
	})
	t.Run("log", func(t *testing.T) {
		r := indexed(t)
		record := writer.BlockFact(&rpc.Header{Number: 1})
		record.GetBlock().Hash = []byte{1}
		record.Seq, record.ChainId = r.cursor().GetSeq()+1, r.config.ID
		r.produce(&kgo.Record{Topic: chainlog.LogTopic(r.config.ID), Value: mustMarshal(t, record)})
		r.refused("is corrupt", "hashes of block 1", "restore the topic")
	})
}
