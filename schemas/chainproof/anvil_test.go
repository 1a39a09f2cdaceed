package chainproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/chainproof"
)

// logging deploys a contract that emits a log with the word 42 and the topic 7 at each call.
var logging = hexutil.MustDecode("0x6c602a600052600760206000a100600052600d6013f3")

// Blocks with one transaction of each type, each with a log, are proven as hashed by a client that shares no code with
// go-ethereum: Ethereum's types, and those of the OP stack with a deposit (rollups have no blobs).
func TestBlockOfEachType(t *testing.T) {
	for name, c := range map[string]struct {
		optimism bool
		types    []uint8
	}{
		"ethereum": {false, []uint8{types.LegacyTxType, types.AccessListTxType, types.DynamicFeeTxType, types.BlobTxType,
			types.SetCodeTxType}},
		"OP stack": {true, []uint8{0x7e, types.LegacyTxType, types.AccessListTxType, types.DynamicFeeTxType,
			types.SetCodeTxType}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			anvil := enginetest.Anvil(t, engines.AnvilOptions{NoMining: true, Optimism: c.optimism, Fleeting: true})
			n := &typed{t: t, ctx: ctx}
			var err error
			if n.Client, err = ethclient.DialContext(ctx, anvil.URL); err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if n.contract, err = n.deploy(); err != nil {
				t.Fatal(err)
			}
			for _, kind := range c.types {
				n.send(kind)
			}
			header, receipts := n.mine()
			b, err := chainproof.Prove(header.Hash(), header, receipts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.types {
				l, p, err := b.Log(uint32(i))
				if err != nil || l == nil {
					t.Fatalf("log %d: %v, %v", i, l, err)
				}
				if _, got, err := p.Verify(header.Hash()); err != nil || got.Address != n.contract ||
					new(big.Int).SetBytes(got.Data).Uint64() != 42 {
					t.Errorf("log %d is verified as %v: %v", i, got, err)
				}
			}
			have := map[uint8]bool{}
			for _, r := range receipts {
				have[r.Type] = true
			}
			for _, kind := range c.types {
				if !have[kind] {
					t.Errorf("the block has no transaction of type %#x", kind)
				}
			}
		})
	}
}

// typed sends transactions of all types to a development chain, each from a new account.
type typed struct {
	*ethclient.Client
	t        *testing.T
	ctx      context.Context
	contract common.Address
	accounts int
}

// call sends a request to the node.
func (n *typed) call(result any, method string, params ...any) {
	n.t.Helper()
	if err := n.Client.Client().CallContext(n.ctx, result, method, params...); err != nil {
		n.t.Fatalf("%s: %v", method, err)
	}
}

// mine mines the sent transactions into a block, and reads the block from the node.
func (n *typed) mine() (*types.Header, chainproof.Receipts) {
	n.t.Helper()
	n.call(nil, "evm_mine")
	var header, receipts json.RawMessage
	n.call(&header, "eth_getBlockByNumber", "latest", false)
	n.call(&receipts, "eth_getBlockReceipts", "latest")
	h, err := chainproof.ReadHeader(header)
	if err != nil {
		n.t.Fatal(err)
	}
	var named struct{ Hash common.Hash }
	if err := json.Unmarshal(header, &named); err != nil || h.Hash() != named.Hash {
		n.t.Fatalf("the header hashes to %s instead of %s: %v", h.Hash(), named.Hash, err)
	}
	r, err := chainproof.ReadReceipts(receipts)
	if err != nil {
		n.t.Fatal(err)
	}
	return h, r
}

func (n *typed) deploy() (common.Address, error) {
	n.t.Helper()
	from := n.account()
	n.call(nil, "eth_sendTransaction", map[string]any{"from": from, "data": hexutil.Bytes(logging)})
	n.mine()
	at := crypto.CreateAddress(from, 0)
	code, err := n.CodeAt(n.ctx, at, nil)
	if err == nil && len(code) == 0 {
		err = fmt.Errorf("the contract is not at %s", at)
	}
	return at, err
}

// account returns an unused account for which the node signs.
func (n *typed) account() common.Address {
	n.t.Helper()
	var all []common.Address
	n.call(&all, "eth_accounts")
	n.accounts++
	return all[n.accounts-1]
}

// send calls the contract in a transaction of a type.
func (n *typed) send(kind uint8) {
	n.t.Helper()
	price := (*hexutil.Big)(big.NewInt(5e9))
	tx := map[string]any{"to": n.contract, "gas": hexutil.Uint64(100_000), "type": hexutil.Uint64(kind)}
	switch kind {
	case types.LegacyTxType:
		tx["gasPrice"] = price
	case types.AccessListTxType:
		tx["gasPrice"], tx["accessList"] = price, types.AccessList{{Address: n.contract, StorageKeys: []common.Hash{{1}}}}
	case types.DynamicFeeTxType:
		tx["maxFeePerGas"], tx["maxPriorityFeePerGas"] = price, price
	case 0x7e:
		tx["sourceHash"], tx["mint"], tx["isSystemTx"], tx["value"] = common.Hash{1}, "0x0", false, "0x0"
	default:
		n.sign(kind)
		return
	}
	tx["from"] = n.account()
	n.call(nil, "eth_sendTransaction", tx)
}

// sign signs and sends a transaction of a type that the node does not sign itself.
func (n *typed) sign(kind uint8) {
	n.t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		n.t.Fatal(err)
	}
	n.call(nil, "anvil_setBalance", crypto.PubkeyToAddress(key.PublicKey), "0xde0b6b3a7640000")
	id, err := n.ChainID(n.ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	chainID, fee := uint256.MustFromBig(id), uint256.NewInt(5e9)
	var inner types.TxData
	if kind == types.BlobTxType {
		var blob kzg4844.Blob
		commitment, err := kzg4844.BlobToCommitment(&blob)
		if err != nil {
			n.t.Fatal(err)
		}
		proofs, err := kzg4844.ComputeCellProofs(&blob)
		if err != nil {
			n.t.Fatal(err)
		}
		sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion1, []kzg4844.Blob{blob}, []kzg4844.Commitment{commitment},
			proofs)
		inner = &types.BlobTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: fee, Gas: 100_000, To: n.contract, BlobFeeCap: fee,
			BlobHashes: sidecar.BlobHashes(), Sidecar: sidecar}
	} else {
		authorised, err := types.SignSetCode(key,
			types.SetCodeAuthorization{ChainID: *chainID, Address: n.contract, Nonce: 1})
		if err != nil {
			n.t.Fatal(err)
		}
		inner = &types.SetCodeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: fee, Gas: 100_000, To: n.contract,
			AuthList: []types.SetCodeAuthorization{authorised}}
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(id), inner)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.SendTransaction(n.ctx, tx); err != nil {
		n.t.Fatalf("send a transaction of type %#x: %v", kind, err)
	}
}
