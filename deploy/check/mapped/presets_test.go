package mapped

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/mapping"
)

// presets are those that have contracts on a development chain, and an event of each that the story must bring to the API.
var presets = map[string]string{"erc4626": "Withdraw", "erc7540": "RedeemRequest", "lagoon-v0.6": "SettleRedeem",
	"yo": "RequestFulfilled", "veda": "OnChainWithdrawRequested", "midas": "SafeApproveRequest"}

// TestPresets: a vault of each preset, all side by side in one system: a real ERC-4626 beside those that speak the events of
// other protocols. After a backfill, at the head and after reorganisations the API says what the contracts say about
// themselves, no log is quarantined, and the oracle, the definitions and the chain agree with the read model.
func TestPresets(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	plays := map[string]*devchain.Play{}
	var vaults []ingest.VaultConfig
	for preset := range presets {
		play, err := devchain.DeployProtocol(t.Context(), s.node, preset, 3)
		must(t, err)
		t.Cleanup(play.Close)
		plays[preset] = play
		t.Logf("a vault of %s is deployed", preset)
		must(t, play.Steps(t.Context(), 14))
		v := ingest.VaultConfig{Address: play.Sources["vault"].Hex(), StartBlock: play.StartBlock, Mapping: oftenSampled(t, preset), Sources: map[string]ingest.SourceConfig{}}
		for role, address := range play.Sources {
			if role != "vault" {
				v.Sources[role] = ingest.SourceConfig{Address: address.Hex()}
			}
		}
		if c := play.Currency; c != nil {
			v.Asset = ingest.AssetConfig{Address: c.Address.Hex(), Symbol: c.Symbol, Decimals: &c.Decimals}
		}
		vaults = append(vaults, v)
	}
	must(t, devchain.Mine(t.Context(), s.node, 20))
	s.programs(vaults...)
	t.Log("the programs are up")
	for _, play := range plays {
		s.agrees(play)
		s.values(play)
	}
	for round := range 2 {
		t.Logf("reorganisation %d", round+1)
		for _, play := range plays {
			must(t, play.Steps(t.Context(), 6))
		}
		must(t, devchain.Reorg(t.Context(), s.node, 6))
		for _, play := range plays {
			s.agrees(play)
			s.values(play)
		}
	}
	for preset, event := range presets {
		s.plays(plays[preset], "/events?pageSize=100&vault="+plays[preset].Sources["vault"].Hex(), event)
		s.explains(plays[preset])
	}
	s.webhook("deposit", plays["yo"].Sources["vault"].Hex())
	wait.Until(t, func() error {
		r, err := verify.Verify(t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
		if err == nil && (r.Err() != nil || len(r.Quarantined) > 0) {
			err = fmt.Errorf("%w\n%s", r.Err(), r)
		}
		return err
	})
}

// every is how many blocks lie between two samples of NAV here: the chain is short.
const every = 4

// oftenSampled is a preset whose NAV, if it is sampled, is sampled more often: the name of a file then.
func oftenSampled(t *testing.T, preset string) string {
	t.Helper()
	text, err := mapping.PresetText(preset)
	must(t, err)
	often := strings.Replace(string(text), "every: 300", fmt.Sprintf("every: %d", every), 1)
	if often == string(text) {
		return preset
	}
	file := filepath.Join(t.TempDir(), preset+".yaml")
	must(t, os.WriteFile(file, []byte(often), 0o600))
	return file
}

// values waits until the newest NAV of the API, of a vault whose NAV is sampled, is that of the newest block that is
// sampled, and what the contract returns there.
func (s *system) values(play *devchain.Play) {
	s.t.Helper()
	vault := play.Sources["vault"]
	m, err := mapping.Preset(play.Preset)
	must(s.t, err)
	if m.Sampling == nil {
		return
	}
	head, err := s.client.BlockNumber(s.t.Context())
	must(s.t, err)
	newest := new(big.Int).SetUint64(head - head%every)
	said, err := s.client.CallContract(s.t.Context(), ethereum.CallMsg{To: &vault, Data: mapping.SampleCall(18)}, newest)
	must(s.t, err)
	want := fmt.Sprintf("%s at block %s", new(big.Int).SetBytes(said), newest)
	wait.Until(s.t, func() error {
		data, err := s.ask("/vaults/" + vault.Hex() + "/nav?pageSize=1")
		if err != nil {
			return err
		}
		list := data.([]any)
		if len(list) == 0 {
			return fmt.Errorf("%s: there is no NAV", play.Preset)
		}
		nav := list[0].(map[string]any)
		if got := fmt.Sprintf("%s at block %s", nav["navPerShare"], nav["blockNumber"]); got != want || nav["txHash"] != nil {
			return fmt.Errorf("%s: NAV is %s, want %s: %v", play.Preset, got, want, nav)
		}
		return nil
	})
	s.says("/vaults/"+vault.Hex(), `"nav":true`, `"navPerShare":"`+new(big.Int).SetBytes(said).String()+`"`)
	s.says("/vaults/"+vault.Hex()+"/series?interval=hour", `"close":"`+new(big.Int).SetBytes(said).String()+`"`)
}

// explains waits until an explanation says what the API says of a user's deposits and of the NAV, or that there is none, and
// no deposit waits for a sweep that the protocol does not have.
func (s *system) explains(play *devchain.Play) {
	s.t.Helper()
	of := "/vaults/" + play.Sources["vault"].Hex()
	compare := func(answer, field string, want any) error {
		data, err := s.ask("/explain?of=" + url.QueryEscape("/api/v1"+answer) + "&field=" + url.QueryEscape(field))
		switch {
		case err != nil && strings.Contains(err.Error(), "404 Not Found") && (field != "/navPerShare" || play.Preset == "lagoon-v0.6"):
			return nil
		case err != nil:
			return err
		}
		if got := data.(map[string]any)["value"]; fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%s %s is %v, and its explanation %v", answer, field, want, got)
		}
		return nil
	}
	wait.Until(s.t, func() error {
		users, err := s.ask(of + "/users?pageSize=3&sortBy=totalDeposited")
		if err != nil {
			return err
		}
		for _, u := range queued(users) {
			for _, field := range []string{"totalDeposited", "totalWithdrawn"} {
				if err := compare(of+"/users", fmt.Sprintf("/%s/%s", u["address"], field), u[field]); err != nil {
					return err
				}
			}
		}
		data, err := s.ask(of)
		if err != nil {
			return err
		}
		vault := data.(map[string]any)
		waiting, err := s.ask("/queues/deposits?vault=" + play.Sources["vault"].Hex())
		if err != nil {
			return err
		}
		if sweeps := vault["capabilities"].(map[string]any)["sweeps"]; sweeps == false && len(queued(waiting)) > 0 {
			return fmt.Errorf("%s sweeps nothing, and %v waits for it", play.Preset, waiting)
		}
		return compare(of, "/navPerShare", vault["navPerShare"])
	})
}

// plays continues the story, which is random, until an answer has a word: a step at a time, once the API has all of the
// chain. What it waits for can be orphaned until then.
func (s *system) plays(play *devchain.Play, path, word string) {
	s.t.Helper()
	wait.Until(s.t, func() error {
		data, err := s.ask(path)
		if err != nil {
			return err
		}
		if text, err := json.Marshal(data); err != nil || strings.Contains(string(text), word) {
			return err
		}
		height, err := s.client.BlockNumber(s.t.Context())
		must(s.t, err)
		newest, err := s.ask("/block")
		if err != nil {
			return err
		}
		if fmt.Sprint(newest.(map[string]any)["blockNumber"]) == fmt.Sprint(height) {
			must(s.t, play.Steps(s.t.Context(), 1))
		}
		return fmt.Errorf("%s has no %s; the newest block of the chain is %d, and of the API %v", path, word, height, newest)
	})
}

// agrees waits until the queue of the API holds what the contracts say is not paid yet.
func (s *system) agrees(play *devchain.Play) {
	s.t.Helper()
	var want big.Int
	for _, u := range play.Users() {
		for _, method := range map[string][]string{"lagoon-v0.6": {"pendingRedeemRequest"}, "midas": {"pendingShares"}}[play.Preset] {
			n, err := play.Number(s.t.Context(), method, u)
			must(s.t, err)
			want.Add(&want, n)
		}
	}
	if play.Preset == "veda" {
		n, err := play.Number(s.t.Context(), "balanceOf", play.Sources["queue"])
		must(s.t, err)
		want.Set(n)
	}
	if play.Preset == "yo" || play.Preset == "erc7540" {
		return // a request that is paid in parts has all of its shares until the last part
	}
	wait.Until(s.t, func() error {
		data, err := s.ask("/queues/withdrawals?pageSize=100&vault=" + play.Sources["vault"].Hex())
		if err != nil {
			return err
		}
		var got big.Int
		for _, q := range queued(data) {
			if q["claimable"] == true {
				continue
			}
			n, _ := new(big.Int).SetString(strings.Trim(fmt.Sprint(q["shares"]), `"`), 10)
			if n == nil {
				return fmt.Errorf("a request of %v", q)
			}
			got.Add(&got, n)
		}
		if got.Cmp(&want) != 0 {
			return fmt.Errorf("%s: in the queue are %s shares, and the contract says %s: %v", play.Preset, &got, &want, data)
		}
		return nil
	})
}

func queued(data any) (out []map[string]any) {
	list, _ := data.([]any)
	for _, q := range list {
		out = append(out, q.(map[string]any))
	}
	return out
}
