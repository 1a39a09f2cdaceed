package mapped

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/statement"
)

// presets are those with contracts for a development chain, each with an event that must reach the API.
var presets = map[string]string{"erc4626": "Withdraw", "erc7540": "RedeemRequest", "lagoon-v0.6": "SettleRedeem",
	"yo": "RequestFulfilled", "veda": "OnChainWithdrawRequested", "midas": "SafeApproveRequest"}

// TestPresets runs a vault of each preset, all in one system: a real ERC-4626 vault and vaults with the events of other
// protocols. After a backfill, at the head and after reorganisations the API agrees with the contracts, no log is
// quarantined, and the oracle, the definitions and the chain agree with the read model.
func TestPresets(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	plays := map[string]*devchain.Play{}
	var indexed []vaults.Config
	for preset := range presets {
		play, err := devchain.DeployProtocol(t.Context(), s.node, preset, 3)
		must(t, err)
		t.Cleanup(play.Close)
		plays[preset] = play
		t.Logf("a vault of %s is deployed", preset)
		must(t, play.Steps(t.Context(), 14))
		v := vaults.Config{Address: play.Sources["vault"].Hex(), StartBlock: play.StartBlock,
			Mapping: oftenSampled(t, preset), Sources: map[string]vaults.SourceConfig{}}
		for role, address := range play.Sources {
			if role != "vault" {
				v.Sources[role] = vaults.SourceConfig{Address: address.Hex()}
			}
		}
		if c := play.Currency; c != nil {
			v.Asset = vaults.AssetConfig{Address: c.Address.Hex(), Symbol: c.Symbol, Decimals: &c.Decimals}
		}
		indexed = append(indexed, v)
	}
	must(t, devchain.Mine(t.Context(), s.node, 20))
	s.programs(indexed...)
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
		s.leavesOut(plays[preset])
	}
	s.webhook("deposit", plays["yo"].Sources["vault"].Hex())
	s.provenStatement(plays["yo"].Sources["vault"])
	wait.Until(t, func() error {
		r, err := verify.Verify(t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
		if err == nil && (r.Err() != nil || len(r.Quarantined) > 0) {
			err = fmt.Errorf("%w\n%s", r.Err(), r)
		}
		return err
	})
}

// every is the number of blocks between two samples of NAV here, because the chain is short.
const every = 4

// oftenSampled returns a preset, or, if its NAV is sampled, the path of a copy that samples it more often.
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

// values waits until the newest NAV in the API, of a vault whose NAV is sampled, is of the newest sampled block or a
// later log, and equals what the contract returns there.
func (s *system) values(play *devchain.Play) {
	s.t.Helper()
	vault := play.Sources["vault"]
	m, err := mapping.Preset(play.Preset)
	must(s.t, err)
	if m.SampleEvery == 0 {
		return
	}
	head, err := s.client.BlockNumber(s.t.Context())
	must(s.t, err)
	digits := uint32(18)
	if play.Preset == "lagoon-v0.6" { // its shares have 18 decimals, and its asset has 6
		digits = 30
	}
	var said []byte
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
		at, _ := new(big.Int).SetString(fmt.Sprint(nav["blockNumber"]), 10)
		if at == nil || at.Uint64() < head-head%every {
			return fmt.Errorf("%s: the newest NAV is before block %d: %v", play.Preset, head-head%every, nav)
		}
		if said, err = s.client.CallContract(s.t.Context(), ethereum.CallMsg{To: &vault, Data: mapping.SampleCall(digits)},
			at); err != nil {
			return err
		}
		if want := new(big.Int).SetBytes(said); nav["navPerShare"] != want.String() {
			return fmt.Errorf("%s: NAV is %s, want %s: %v", play.Preset, nav["navPerShare"], want, nav)
		}
		return nil
	})
	s.says("/vaults/"+vault.Hex(), `"nav":true`, `"navPerShare":"`+new(big.Int).SetBytes(said).String()+`"`)
	s.says("/vaults/"+vault.Hex()+"/series?interval=hour", `"close":"`+new(big.Int).SetBytes(said).String()+`"`)
}

// provenStatement checks that the partner's statement names the mappings of its vaults, and that rebuilding it with
// them from the node's logs gives the same bytes.
func (s *system) provenStatement(vault common.Address) {
	s.t.Helper()
	texts, err := statement.BuiltIn()
	must(s.t, err)
	var statedFile string // path of the vault's mapping, if it is not a preset
	for _, v := range s.config.Vaults {
		if strings.Contains(v.Mapping, "/") {
			text, err := os.ReadFile(v.Mapping)
			must(s.t, err)
			must(s.t, texts.Add(v.Mapping, text))
			if v.Address == vault.Hex() {
				statedFile = v.Mapping
			}
		}
	}
	begin, err := s.client.HeaderByNumber(s.t.Context(), big.NewInt(1))
	must(s.t, err)
	var d *statement.Document
	var end *types.Header // of the range; it stays until it is final, however far the read model is behind
	wait.Until(s.t, func() error {
		must(s.t, devchain.Mine(s.t.Context(), s.node, 1)) // until a block with the partner's events is final
		if end == nil {
			head, err := s.client.BlockNumber(s.t.Context())
			must(s.t, err)
			end, err = s.client.HeaderByNumber(s.t.Context(), new(big.Int).SetUint64(head-10))
			must(s.t, err)
		}
		at := func(h *types.Header) string { return time.Unix(int64(h.Time), 0).UTC().Format(time.RFC3339) }
		r, err := s.get("/partner/statement?from=" + at(begin) + "&to=" + at(end))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			return fmt.Errorf("the statement is %s, %v: %s", r.Status, err, text)
		}
		if d, err = statement.Parse(text); err == nil && !strings.Contains(string(text), `"type":"deposit.referral"`) {
			end, err = nil, fmt.Errorf("no deposit is in %s", text)
		}
		return err
	})
	var again bytes.Buffer
	if _, err := statement.Rebuild(s.t.Context(), &again, d.Header, s.client, texts, nil); err != nil ||
		!bytes.Equal(again.Bytes(), d.Body) {
		s.t.Errorf("the statement is\n%s\nand by the chain, %v\n%s", d.Body, err, again.Bytes())
	}
	presets, err := statement.BuiltIn()
	must(s.t, err)
	var unknown *statement.UnknownMapping
	if _, err := statement.Rebuild(s.t.Context(), io.Discard, d.Header, s.client, presets, nil); statedFile != "" &&
		!errors.As(err, &unknown) {
		s.t.Errorf("without the text of a mapping: %v", err)
	}
}

// leavesOut checks that values which a protocol's logs do not contain are null in the API and empty in files, never 0
// or the zero address.
func (s *system) leavesOut(play *devchain.Play) {
	s.t.Helper()
	type absent struct {
		requests, deposits []string
		except             string // the kind of events that contain them nevertheless
	}
	want := map[string]absent{"erc7540": {requests: []string{"assetsEstimate", "receiverAddress"}},
		"lagoon-v0.6": {requests: []string{"assetsEstimate", "receiverAddress"}},
		"yo":          {requests: []string{"receiverAddress"}},
		"veda":        {requests: []string{"receiverAddress"}, deposits: []string{"senderAddress"}, except: "BulkDeposit"},
		"midas":       {requests: []string{"assetsEstimate"}}}[play.Preset]
	vault := play.Sources["vault"].Hex()
	complete := map[any]bool{} // the ids of events that contain all fields
	if want.except != "" {
		events, err := s.ask("/vaults/" + vault + "/events?pageSize=100&kind=" + want.except)
		must(s.t, err)
		for _, e := range queued(events) {
			complete[e["id"]] = true
		}
	}
	for list, fields := range map[string][]string{"withdrawals": want.requests, "deposits": want.deposits} {
		data, err := s.ask("/vaults/" + vault + "/" + list + "?pageSize=100")
		must(s.t, err)
		for _, row := range queued(data) {
			if row["shares"] == "0" { // a request has shares, and a deposit without them has no price yet
				s.t.Errorf("%s: no shares in %v", play.Preset, row)
			}
			for _, field := range []string{"assetsEstimate", "receiverAddress", "senderAddress"} {
				if value, has := row[field]; has && (value == nil) != (slices.Contains(fields, field) && !complete[row["id"]]) {
					s.t.Errorf("%s: %s of %v", play.Preset, field, row)
				}
			}
		}
		if text := fmt.Sprint(data); strings.Contains(text, common.Address{}.Hex()) {
			s.t.Errorf("%s: %s contains the zero address", play.Preset, text)
		}
		s.leavesOutOfFile("/vaults/"+vault+"/"+list, fields, complete)
	}
	entries, err := s.ask("/settlement/summary")
	must(s.t, err)
	for _, e := range queued(entries) {
		unknown := slices.Contains(want.requests, "assetsEstimate") || play.Preset == "erc4626" // erc4626 has no queue
		if amount := e["withdrawalsToFund"].(map[string]any)["totalAmount"]; e["vaultAddress"] == vault &&
			(amount == nil) != unknown {
			s.t.Errorf("%s: to fund are %v", play.Preset, amount)
		}
	}
}

// leavesOutOfFile checks that some columns of a CSV are empty, except in the rows with the given ids.
func (s *system) leavesOutOfFile(path string, fields []string, complete map[any]bool) {
	s.t.Helper()
	r, err := s.get(path + "?format=csv")
	must(s.t, err)
	defer r.Body.Close()
	rows, err := csv.NewReader(r.Body).ReadAll()
	must(s.t, err)
	id := slices.Index(rows[0], "id")
	for _, field := range fields {
		at := slices.Index(rows[0], field)
		for _, row := range rows[1:] {
			if (row[at] == "") == complete[row[id]] {
				s.t.Errorf("%s: %s is %q in the file", path, field, row[at])
			}
		}
	}
}

// explains waits until the explanations match the API's figures for users, the queue and the NAV, or are missing where
// single logs of the protocol do not contain the number, and until no deposit waits for a sweep that the protocol does
// not have.
func (s *system) explains(play *devchain.Play) {
	s.t.Helper()
	of := "/vaults/" + play.Sources["vault"].Hex()
	m, err := mapping.Preset(play.Preset)
	must(s.t, err)
	single := (&mapping.Description{Ranges: []mapping.Range{{Mapping: m}}}).Single()
	compare := func(answer, field string, want any, explained bool) error {
		data, err := s.ask("/explain?of=" + url.QueryEscape("/api/v1"+answer) + "&field=" + url.QueryEscape(field))
		if missing := err != nil && strings.Contains(err.Error(), "404 Not Found"); missing && !explained {
			return nil
		}
		if err != nil {
			return err
		}
		if got := data.(map[string]any)["value"]; !explained || fmt.Sprint(got) != fmt.Sprint(want) {
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
			for field, explained := range map[string]bool{"totalDeposited": true, "totalWithdrawn": single.Claims,
				"firstSeen": true} {
				if err := compare(of+"/users", fmt.Sprintf("/%s/%s", u["address"], field), u[field], explained); err != nil {
					return err
				}
			}
			data, err := s.ask(fmt.Sprintf("/users/%s", u["address"]))
			if err != nil {
				return err
			}
			paid := "0"
			for _, h := range queued(data.(map[string]any)["holdings"].(map[string]any)["withdrawals"]) {
				if h["vaultAddress"] == play.Sources["vault"].Hex() {
					paid = h["_sum"].(map[string]any)["assetsClaimed"].(string)
				}
				at := fmt.Sprintf("/holdings/withdrawals/%s/", h["vaultAddress"])
				if err := compare(fmt.Sprintf("/users/%s", u["address"]), at+"_count", h["_count"], true); err != nil {
					return err
				}
				estimates := h["_sum"].(map[string]any)["assetsEstimate"]
				if err := compare(fmt.Sprintf("/users/%s", u["address"]), at+"_sum/assetsEstimate", estimates, true); err != nil {
					return err
				}
			}
			if paid != u["totalWithdrawn"] {
				return fmt.Errorf("%s was paid %v, and %s by the holdings", u["address"], u["totalWithdrawn"], paid)
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
		stats := vault["stats"].(map[string]any)
		if err := compare(of, "/stats/userCount", stats["userCount"], true); err != nil {
			return err
		}
		if pending := stats["pendingWithdrawals"]; pending != nil {
			if err := compare(of, "/stats/pendingWithdrawals", pending, single.Queue); err != nil {
				return err
			}
		}
		return compare(of, "/navPerShare", vault["navPerShare"], play.Preset != "lagoon-v0.6")
	})
}

// plays continues the random scenario until a response contains a word: one step at a time, each after the API has
// indexed the whole chain. What it waits for may be orphaned before.
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

// agrees waits until the API's queue contains what the contracts have not paid yet.
func (s *system) agrees(play *devchain.Play) {
	s.t.Helper()
	var want big.Int
	for _, u := range play.Users() {
		for _, method := range map[string][]string{"lagoon-v0.6": {"pendingRedeemRequest"},
			"midas": {"pendingShares"}}[play.Preset] {
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
		return // a request that is paid in parts keeps all of its shares until the last part
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
