package event_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/navlog/navlog/schemas/event"
)

// testdata holds records as they are in topics that are kept forever. A file never changes: a new shape of a record is
// a new file.
var write = flag.Bool("write-missing", false, "write the golden files that do not exist yet")

func fill(n int, first byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

var log = &event.Log{
	Address: fill(20, 0x10), Topics: [][]byte{fill(32, 0x20), fill(32, 0x40)}, Data: fill(96, 0x60),
	BlockNumber: 19_000_001, BlockHash: fill(32, 0x80),
	BlockTime: 1_700_000_012, TxHash: fill(32, 0xa0), TxIndex: 17, LogIndex: 301,
}

var block = &event.Block{Number: 19_000_001, Hash: fill(32, 0x80), ParentHash: fill(32, 0xc0), Time: 1_700_000_012}

// golden maps each file to its decoded message.
var golden = map[string]proto.Message{
	"record-vault-removed-1": &event.Record{Seq: 9, Boundary: true, ChainId: 1,
		Fact: &event.Record_Vault{Vault: &event.Vault{Address: fill(20, 0x10), StartBlock: 18_000_000, Removed: true}}},
	"record-origin-vault-1": &event.Record{Seq: 1, Boundary: true, ChainId: 1,
		Origin: &event.Origin{LogId: fill(16, 1), GenesisHash: fill(32, 0xd0)},
		Fact: &event.Record_Vault{Vault: &event.Vault{
			Address: fill(20, 0x10), StartBlock: 18_000_000, Name: "Dollar Treasury Vault", Symbol: "vTREAS", Decimals: 18,
			Asset: &event.Token{Address: fill(20, 0x30), Symbol: "USDC", Decimals: 6},
		}}},
	"record-vault-mapped-1": &event.Record{Seq: 9, Boundary: true, ChainId: 1,
		Fact: &event.Record_Vault{Vault: &event.Vault{Address: fill(20, 0x10), StartBlock: 18_000_000,
			Sources: []*event.Source{{Role: "gateway", Address: fill(20, 0x50),
				Filters: []*event.TopicFilter{{Topic: 2, Value: fill(32, 0x70)}}}},
			Mappings: []*event.MappingRange{{First: 18_000_000, Last: 18_999_999, Preset: "example",
				Text: []byte(`{"preset":"example"}`),
				Hash: fill(32, 0x90)}}}}},
	"record-vault-aliases-1": &event.Record{Seq: 9, Boundary: true, ChainId: 1,
		Fact: &event.Record_Vault{Vault: &event.Vault{Address: fill(20, 0x10), StartBlock: 18_000_000,
			Aliases: []*event.Alias{{Value: fill(32, 0x20), PartnerId: 42}}}}},
	"record-log-of-vault-1": &event.Record{Seq: 2, ChainId: 1, Fact: &event.Record_Log{Log: &event.Log{
		Address: fill(20, 0x50), Topics: [][]byte{fill(32, 0x20)}, BlockNumber: 19_000_001, BlockHash: fill(32, 0x80),
		BlockTime: 1_700_000_012, TxHash: fill(32, 0xa0), LogIndex: 3, Vault: fill(20, 0x10)}}},
	"record-log-1": &event.Record{Seq: 2, ChainId: 1, Fact: &event.Record_Log{Log: log}},
	"record-log-without-data-1": &event.Record{Seq: 5, ChainId: 1, Fact: &event.Record_Log{Log: &event.Log{
		Address: fill(20, 0x10), Topics: [][]byte{fill(32, 0x20)}, BlockNumber: 19_000_001, BlockHash: fill(32, 0x80),
		BlockTime: 1_700_000_012,
		TxHash:    fill(32, 0xa0), TxIndex: 17, LogIndex: 302, DataLength: 1_100_000, DataHash: fill(32, 0x33)}}},
	"record-block-1": &event.Record{Seq: 3, Boundary: true, ChainId: 1, Fact: &event.Record_Block{Block: block}},
	"record-sample-1": &event.Record{Seq: 5, ChainId: 1, Fact: &event.Record_Sample{Sample: &event.Sample{
		Vault: fill(20, 0x10), BlockNumber: 19_000_001, BlockHash: fill(32, 0x80), BlockTime: 1_700_000_012, NavDigits: 30,
		Assets: fill(32, 0x0)}}},
	"record-retracts-1": &event.Record{Seq: 4, Retracts: 3, ChainId: 1, Fact: &event.Record_Block{Block: block}},
	"record-decision-1": &event.Record{Seq: 1 << 40, Boundary: true, ChainId: 1,
		Fact: &event.Record_Decision{Decision: &event.Decision{
			Kind: "accept-reorg:open", Reason: "the chain was rolled back by its operators", Time: 1_700_000_099_123}}},
	"cursor-1": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults:    []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001}},
		WindowSeq: 2, WindowOffset: 5, Frozen: "block 18999937 is final, but the chain has another one there",
	},
	"cursor-2": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults: []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001,
			ConfiguredName: "Dollars"}},
		WindowSeq: 2, WindowOffset: 5,
	},
	"cursor-4": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults: []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001,
			BelievedTo: 18_998_977, ProvenTo: 18_500_000}},
		WindowSeq: 2, WindowOffset: 5,
	},
	"cursor-5": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults:    []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 18_500_001, Removed: true}},
		WindowSeq: 2, WindowOffset: 5,
	},
	"cursor-3": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults:    []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001}},
		WindowSeq: 2, WindowOffset: 5, WindowBlock: 18_999_940,
	},
	"cursor-7": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults: []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001,
			SampledFrom: 18_999_600}},
		WindowSeq: 2, WindowOffset: 5,
	},
	"cursor-6": &event.Cursor{
		LogId: fill(16, 1), GenesisHash: fill(32, 0xd0), ChainId: 1, InstanceId: fill(16, 0xe0), Seq: 4, Head: block,
		FinalBlock: 18_999_937, ReferralBlock: 18_999_937,
		Vaults: []*event.Coverage{{Address: fill(20, 0x10), StartBlock: 18_000_000, CoveredTo: 19_000_001, RecordSeq: 3,
			RecordOffset: 7}},
		WindowSeq: 2, WindowOffset: 5, LogsWithoutData: 3,
	},
	"referral-deposit-1": &event.Referral{
		ChainId: 1, Kind: event.Referral_KIND_DEPOSIT, PartnerId: 42, Seq: 2, LogId: fill(16, 1), Log: log},
	"referral-withdrawal-1": &event.Referral{
		ChainId: 1, Kind: event.Referral_KIND_WITHDRAWAL, PartnerId: 4_294_967_295, Seq: 2, LogId: fill(16, 1), Log: log},
	"referral-effect-1": &event.Referral{
		ChainId: 1, Kind: event.Referral_KIND_WITHDRAWAL, PartnerId: 42, Seq: 2, LogId: fill(16, 1), Log: log,
		Effect: &event.Effect{Kind: event.Effect_KIND_REQUESTED, Key: []byte{7}, Owner: fill(20, 0xa0), Assets: []byte{1, 0},
			Shares: fill(25, 0xff), PartnerId: 42, Quarantined: "shares is too large"}},
	"referral-bare-effect-1": &event.Referral{
		ChainId: 1, Kind: event.Referral_KIND_WITHDRAWAL, PartnerId: 42, Seq: 2, LogId: fill(16, 1), Log: log,
		Effect: &event.Effect{Kind: event.Effect_KIND_REQUESTED, Key: []byte{7}, Owner: fill(20, 0xa0), NoAssets: true,
			NoShares:  true,
			PartnerId: 42}},
}

func TestGoldenBytes(t *testing.T) {
	if *write {
		writeMissing(t)
	}
	files, err := filepath.Glob("testdata/*.bin")
	if err != nil || len(files) != len(golden) {
		t.Fatalf("testdata has %d files, but %d are declared (%v): declare every file", len(files), len(golden), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bin")
		want, known := golden[name]
		if !known {
			t.Errorf("%s: no expected record is declared for it", file)
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := want.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(b, got); err != nil {
			t.Errorf("%s cannot be read any more: %v", file, err)
			continue
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s decodes to\n%v\ninstead of\n%v", file, got, want)
		}
		if len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s has fields that are no longer declared", file)
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(got)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s is written differently now:\n%x\nwas\n%x (%v)", file, again, b, err)
		}
	}
}

func writeMissing(t *testing.T) {
	for name, m := range golden {
		file := filepath.Join("testdata", name+".bin")
		if _, err := os.Stat(file); err == nil {
			continue
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Every field of every message is set in some golden file, so that no field can change its number or type unnoticed.
func TestGoldenFilesCoverEveryField(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			seen[f.FullName()] = true
			if f.Kind() == protoreflect.MessageKind {
				if f.IsList() {
					for i := range v.List().Len() {
						walk(v.List().Get(i).Message())
					}
				} else {
					walk(v.Message())
				}
			}
			return true
		})
	}
	for _, m := range golden {
		walk(m.ProtoReflect())
	}
	messages := event.File_event_event_proto.Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			if name := fields.Get(j).FullName(); !seen[name] {
				t.Errorf("no golden file sets %s", name)
			}
		}
	}
}
