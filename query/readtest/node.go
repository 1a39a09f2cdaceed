package readtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/navlog/navlog/schemas/contracts"
)

// Node is a node of the chain that has the blocks of some facts, and their receipts.
type Node struct {
	URL      string
	Blocks   map[common.Hash]*types.Header
	Receipts map[common.Hash]types.Receipts
	// Spoil may change a response to a method, from its member "result" onwards, before it is sent.
	Spoil func(method, result string) string
	// Synced: the node is one of Polygon, and the last fact of a block is in the receipt of a state sync, which is not
	// part of the receipts root.
	Synced bool
	Calls  int
}

// NewNode starts a node without blocks.
func NewNode(t testing.TB) *Node {
	n := &Node{Blocks: map[common.Hash]*types.Header{}, Receipts: map[common.Hash]types.Receipts{}, Spoil: AsIs}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.URL = server.URL
	return n
}

// AsIs is a Spoil that changes nothing.
func AsIs(_, result string) string { return result }

// Block creates a block with some deposits, requests, claims and NAVs, and sets their position and hash: each is in a
// separate transaction with a different type, after an unrelated transaction. The record of the block comes last.
func (n *Node) Block(t testing.TB, number uint64, facts ...Fact) []Fact {
	t.Helper()
	receipts := types.Receipts{{TxHash: Tx(250),
		Logs: []*types.Log{{Address: Unknown, Topics: []common.Hash{}}, {Address: Unknown, Topics: []common.Hash{}}}}}
	for i, f := range facts {
		topics, data, err := contracts.Encode(emitted(t, f))
		if err != nil {
			t.Fatal(err)
		}
		facts[i].Block, facts[i].Index = number, uint32(2+i)
		receipts = append(receipts,
			&types.Receipt{Type: uint8(1+i) % 5, Status: 1, CumulativeGasUsed: uint64(i), TxHash: f.Tx,
				Logs: []*types.Log{{Address: f.Vault, Topics: topics, Data: data}}})
	}
	for _, r := range receipts {
		r.Bloom = types.CreateBloom(r)
	}
	rooted := receipts
	if n.Synced {
		rooted = receipts[:len(receipts)-1]
	}
	h := &types.Header{Number: new(big.Int).SetUint64(number), Time: uint64(BlockTime(number)), Difficulty: new(big.Int),
		BaseFee: big.NewInt(7), ReceiptHash: types.DeriveSha(rooted, trie.NewStackTrie(nil))}
	for _, r := range receipts[len(rooted):] {
		key := binary.BigEndian.AppendUint64([]byte("matic-bor-receipt-"), number)
		r.Type, r.TxHash = types.LegacyTxType, crypto.Keccak256Hash(key, h.Hash().Bytes())
	}
	n.Blocks[h.Hash()], n.Receipts[h.Hash()] = h, receipts
	for i := range facts {
		facts[i].Hash = h.Hash()
	}
	return append(facts, BlockRecord(number))
}

// emitted returns the event for the log of a fact.
func emitted(t testing.TB, f Fact) contracts.Event {
	t.Helper()
	id, assets, shares := new(big.Int).SetUint64(f.ID), big.NewInt(f.Assets), big.NewInt(f.Shares)
	switch f.Kind {
	case Deposit:
		return contracts.DepositAccepted{DepositID: id, Owner: f.User, PartnerID: f.Partner, Sender: f.Other, Assets: assets,
			Shares: shares}
	case Request:
		return contracts.WithdrawalRequested{RequestIndex: id, Owner: f.User, PartnerID: f.Partner, Receiver: f.Other,
			Shares: shares, AssetsEstimate: assets, ExpiresAt: f.Expires}
	case Claim:
		return contracts.WithdrawalClaimed{RequestIndex: id, Owner: f.User, Receiver: f.Other, Shares: shares, Assets: assets}
	case Nav:
		return contracts.NavUpdated{NavID: id, Updater: f.User, NavPerShare: big.NewInt(f.Price), TotalAssets: assets,
			TotalSupply: big.NewInt(f.Supply)}
	}
	t.Fatalf("a node has no log for a %s", f.Kind)
	return nil
}

// ServeHTTP responds to one call.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Params) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.Calls++
	var result any
	if h := n.asked(q.Method, q.Params[0]); h != nil {
		if result = h; q.Method == "eth_getBlockReceipts" {
			result = n.Receipts[h.Hash()]
		}
	}
	text, _ := json.Marshal(result)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, n.Spoil(q.Method, `"result":`+string(text)))
}

// asked returns the block that a call is about, by its number or its hash.
func (n *Node) asked(method string, which json.RawMessage) *types.Header {
	var text string
	_ = json.Unmarshal(which, &text)
	if method != "eth_getBlockByNumber" {
		return n.Blocks[common.HexToHash(text)]
	}
	for _, h := range n.Blocks {
		if fmt.Sprintf("%#x", h.Number) == text {
			return h
		}
	}
	return nil
}
