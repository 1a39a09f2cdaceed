package partner

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
)

const (
	// provenPage is the page size with proofs, in logs.
	provenPage = 20
	// nodeTimeout is the time limit for a header from the reader's own node.
	nodeTimeout = 30 * time.Second
)

// explainedProof is the API's proof of a log.
type explainedProof struct {
	BlockHash common.Hash `json:"blockHash"`
	chainproof.Proof
}

// prover proves the logs of a number one after the other, oldest first, with the API's proofs. It trusts nothing from
// the API, and only the hashes of blocks from the reader's own node.
type prover struct {
	of, field, operation string
	asOf                 *big.Int // the block of the number
	mapped               func(vault common.Address) *mapping.Sources
	counted              map[common.Address]bool // for numbers that count users
	node                 *ethclient.Client       // nil: the reader compares the hashes
	rpc                  string
	block                uint64 // block of hash, which is from the node
	hash                 common.Hash
	last                 []uint64 // block, transaction and log index of the last proven log
}

// prove returns why a log cannot be proven, or "" if it is proven. fault describes a false claim.
func (p *prover) prove(ctx context.Context, e *explainedEvent) (why string, fault, err error) {
	lie := func(format string, a ...any) (string, error, error) {
		return "", fmt.Errorf("the proof of the log of seq %s does not hold: "+format, append([]any{e.Seq}, a...)...), nil
	}
	switch {
	case e.State == "retracted":
		return "it was retracted", nil, nil
	case e.Proof == nil && e.Unproven == nil:
		return lie("there is none, and no reason is given")
	case e.Proof == nil:
		return *e.Unproven, nil, nil
	}
	header, tx, err := e.Proof.Transaction(e.Proof.BlockHash)
	var wrong *chainproof.WrongError
	switch {
	case errors.As(err, &wrong):
		return lie("%s", wrong.Why)
	case err != nil:
		return "", nil, err
	case header.Number.String() != e.BlockNumber:
		return lie("it is about block %s, but the API says that the log is in block %s", header.Number, e.BlockNumber)
	}
	// Each log appears only once: they come in the order of the chain.
	at := []uint64{header.Number.Uint64(), e.Proof.TransactionIndex, uint64(e.Proof.LogInReceipt)}
	if p.last != nil && slices.Compare(p.last, at) >= 0 {
		return lie("it does not come after the previous one")
	}
	p.last = at
	if why := p.difference(e, header, tx); why != "" {
		return lie("%s", why)
	}
	return p.compared(ctx, e)
}

// proof returns the text about a log's proof, and counts the proven ones.
func (p *prover) proof(ctx context.Context, e *explainedEvent, proven *int64) (shown string, fault, err error) {
	why, fault, err := p.prove(ctx, e)
	switch {
	case err != nil:
		return "", nil, err
	case fault != nil:
		return "  NOT PROVEN", fault, nil
	case why != "":
		return "  cannot be proven: " + why, nil, nil
	}
	*proven++
	return "  proven in block " + e.Proof.BlockHash.Hex(), nil, nil
}

// whose matches the address in the path of a number: of a user, or of a vault.
var whose = regexp.MustCompile(`(users)?/(0x[0-9a-fA-F]{40})`)

// readProven maps a proven log with the other logs of its transaction, which can complete it.
func readProven(
	of *mapping.Sources, header *types.Header, tx []*types.Log, proven int,
) (known *mapping.Event, effects []mapping.Effect, failed error) {
	var logs []mapping.Log
	target := 0
	for i, l := range tx {
		role, _ := of.Role(l.Address)
		if i == proven {
			target = len(logs)
		}
		if i == proven || of.TakesLog(l.Address, l.Topics) {
			logs = append(logs, mapping.Log{Role: role, Place: mapping.Place(header.Number.Uint64(), uint32(l.Index)),
				Time: header.Time, Topics: l.Topics, Data: l.Data})
		}
	}
	all, err := of.Map(logs, nil)
	for _, e := range all {
		if e.Log == uint32(target) {
			effects = append(effects, e)
		}
	}
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	for _, fault := range quarantine {
		if fault.Log == target {
			failed = fault
		}
	}
	return of.Event(&logs[target]), effects, failed
}

// difference describes how a proven log contradicts the API; empty if it does not. tx are the logs of its transaction.
func (p *prover) difference(e *explainedEvent, header *types.Header, tx []*types.Log) string {
	vault, l := common.HexToAddress(e.VaultAddress), tx[e.Proof.LogInReceipt]
	of := p.mapped(vault)
	known, effects, failed := readProven(of, header, tx, e.Proof.LogInReceipt)
	at := slices.IndexFunc(effects, func(e mapping.Effect) bool { return slices.Contains(kindsOf(p.field), e.Kind) })
	switch {
	case failed != nil:
		return fmt.Sprintf("the log does not have the layout of an event: %v", failed)
	case known == nil || known.Name != e.Kind:
		return fmt.Sprintf("the log is not a %s", e.Kind)
	case at < 0:
		return fmt.Sprintf("a %s does not affect the number", e.Kind)
	case header.Number.Cmp(p.asOf) > 0:
		return fmt.Sprintf("it is in block %s, but the number is as of block %s", header.Number, p.asOf)
	case !of.TakesLog(l.Address, l.Topics):
		return fmt.Sprintf("the log is of %s, but the API says that it is of %s", l.Address, e.VaultAddress)
	}
	decoded := &effects[at]
	owner := decoded.Owner
	if e.UserAddress != nil && !strings.EqualFold(owner.Hex(), *e.UserAddress) {
		return fmt.Sprintf("the log is about %s, but the API says that it is about %s", owner, *e.UserAddress)
	}
	for _, part := range []string{p.of, p.field} {
		for _, m := range whose.FindAllStringSubmatch(part, -1) {
			of, ofUser := common.HexToAddress(m[2]), m[1] != ""
			if ofUser && of != owner || !ofUser && of != vault {
				return fmt.Sprintf("the log is of %s about %s, but the number is of %s", vault, owner, of)
			}
		}
	}
	if value := p.valueOf(decoded, header); value != e.Change {
		return fmt.Sprintf("the log says %s, but the API says that it changes the number by %s", value, e.Change)
	}
	if ofUsers.MatchString(p.field) {
		if p.counted[owner] {
			return fmt.Sprintf("the number counts users, but %s is counted twice", owner)
		}
		p.counted[owner] = true
	}
	return ""
}

// valueOf returns the log's value of the number, formatted as by the API; empty if logs of its kind have none.
func (p *prover) valueOf(e *mapping.Effect, header *types.Header) string {
	var amount *mapping.Amount
	switch e.Kind {
	case mapping.Deposit, mapping.Requested, mapping.Claimed, mapping.Instant:
		amount = &e.Assets
	case mapping.Valuation:
		amount = map[string]*mapping.Amount{"/navPerShare": &e.Nav, "/totalAssets": &e.Assets,
			"/totalSupply": &e.Shares}[p.field]
	}
	switch {
	case p.operation == "count":
		return "1"
	case strings.HasSuffix(p.field, "/firstSeen"):
		return time.Unix(int64(header.Time), 0).UTC().Format("2006-01-02T15:04:05.000Z")
	case amount == nil:
		return ""
	}
	return amount.Dec()
}

// compared compares the hash of a proven block with that of the reader's own node.
func (p *prover) compared(ctx context.Context, e *explainedEvent) (why string, fault, err error) {
	if p.node == nil {
		return "", nil, nil
	}
	if number := p.last[0]; p.hash == (common.Hash{}) || p.block != number {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
		defer cancel()
		header, err := p.node.HeaderByNumber(ctx, new(big.Int).SetUint64(number))
		switch {
		case errors.Is(err, ethereum.NotFound):
			return "", nil, cli.Unreachable.With(fmt.Errorf("the node of --rpc has no block %d: it is behind, or of another "+
				"chain", number))
		case err != nil:
			return "", nil, cli.Unreachable.With(fmt.Errorf("request block %d from the node of --rpc: %w", number,
				contracts.Discreet(err, p.rpc)))
		}
		p.block, p.hash = number, header.Hash()
	}
	if p.hash != e.Proof.BlockHash {
		return "", fmt.Errorf("the proof of the log of seq %s is of block %s with the hash %s, and the node of --rpc has "+
			"%s there", e.Seq, e.BlockNumber, e.Proof.BlockHash, p.hash), nil
	}
	return "", nil, nil
}

// mappedBy returns how the logs of a vault are mapped: by a mapping, in which the vault itself is the source "vault",
// or by the description of one vault.
func mappedBy(s *cli.Streams, name string) (func(vault common.Address) *mapping.Sources, error) {
	m, d, err := cli.Mapping(s.Err, name)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return m.VaultOnly(), nil
	}
	described := &mapping.Sources{Vault: d.Compile(), Description: d}
	return func(common.Address) *mapping.Sources { return described }, nil
}
