package ingest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

func TestFirstRunAndRestart(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(30)
		p := r.follow()
		r.verify()
		if err := p.Ready(); err != nil {
			t.Errorf("ingest at the head is not ready: %v", err)
		}

		r.steps(5) // while it runs
		p.caughtUp()
		first := r.verify()
		p.halt()

		r.steps(20) // while it is stopped
		again := r.follow()
		all := r.verify()
		again.halt()
		if len(all) <= len(first) {
			t.Fatalf("the log has %d records after the restart and had %d before", len(all), len(first))
		}
		var vaults int
		for _, record := range all {
			if record.GetVault() != nil {
				vaults++
			}
		}
		if vaults != 3 {
			t.Errorf("the log has %d vault records, want one for each of 3 vaults", vaults)
		}
		checkVaultRecord(t, r, all[0].GetVault())
	})
}

// Blocks of a node that do not form a chain are not accepted.
func TestBlocksThatFormNoChain(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(40)
	var wrongAnswers atomic.Int32
	wrongNode := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		truth := realAnswer(r, body)
		var answers []struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  map[string]any  `json:"result"`
		}
		if json.Unmarshal(truth, &answers) == nil && wrongAnswers.Load() < 2 { // a batch
			for _, a := range answers {
				if a.Result["number"] == "0x14" {
					wrongAnswers.Add(1)
					a.Result["parentHash"] = a.Result["hash"]
				}
			}
			truth, _ = json.Marshal(answers)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(truth)
	}))
	t.Cleanup(wrongNode.Close)
	r.config.RPC = rpc.Endpoints(wrongNode.URL)
	r.follow()
	r.verify()
	if wrongAnswers.Load() == 0 {
		t.Error("no response was changed")
	}
}

func checkVaultRecord(t *testing.T, r *rig, got *event.Vault) {
	t.Helper()
	want := r.contracts.Vaults[0]
	if got.GetName() != want.Name || got.GetSymbol() != want.Symbol || got.GetDecimals() != 6 && got.GetDecimals() != 18 ||
		string(got.GetAsset().GetAddress()) != string(want.Asset.Bytes()) || got.GetAsset().GetSymbol() != "DUSD" ||
		got.GetAsset().GetDecimals() != 6 ||
		got.GetStartBlock() != want.StartBlock {
		t.Errorf("the vault record is %v, want %+v", got, want)
	}
}

// Two backends serve one URL. One of them has stopped at a block that left the chain, which is the log's head; the
// other one names the final block. The orphaned block does not become final, and its referral is not published.
func TestFinalBlockOfAnotherBackend(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	depositor := r.depositor()
	p := r.follow()
	depositor.deposit(5, 7)
	p.caughtUp()
	p.halt()
	head, published := r.height(), len(r.published())
	dead := r.blockAt("latest")
	r.reorg(2) // the deposit is gone
	r.mine(30)

	balancer := r.throughProxy(headIs(dead, fmt.Sprintf(`"%#x"`, head)))
	p = r.start()
	balancer.polled(p)
	if st := p.Status(); st.FinalBlock >= head || st.ReferralBlock >= head || len(r.published()) != published {
		t.Errorf("orphaned block %d: the final block is %d, the referral block %d, and %d more referrals are published", head,
			st.FinalBlock, st.ReferralBlock, len(r.published())-published)
	}
	balancer.use(honest)
	p.caughtUp()
	r.verify()
}
