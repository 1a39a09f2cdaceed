package devchain

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// Protocol is a vault on a development chain that emits the events of a preset's protocol.
type Protocol struct {
	Preset  string `json:"preset"`
	ChainID uint64 `json:"chainId"`
	// Sources are the vault's contracts by their roles in the preset.
	Sources map[string]common.Address `json:"sources"`
	Asset   common.Address            `json:"asset"`
	// Currency is the unit in which the vault counts, if none of its contracts names it.
	Currency   *Currency `json:"currency,omitempty"`
	Name       string    `json:"name"`
	Symbol     string    `json:"symbol"`
	StartBlock uint64    `json:"startBlock"`
}

// Currency is a unit of account that is not a token.
type Currency struct {
	Address  common.Address `json:"address"`
	Symbol   string         `json:"symbol"`
	Decimals uint8          `json:"decimals"`
}

// dollar is the US dollar (840 in ISO 4217) as the vaults of Midas represent it.
var dollar = Currency{Address: common.BigToAddress(big.NewInt(840)), Symbol: "USD", Decimals: 18}

// protocols are the presets for which a development chain can have a vault.
var protocols = map[string]struct {
	contract, name, symbol string
	turns                  []turn
	// parts are the roles of contracts that the vault deploys itself.
	parts []string
	// spenders are the roles of the contracts, beside the vault, that take assets and shares of users.
	spenders []string
	// firstTurns lists the turns with which a scenario begins, all of one user: those that are rarely drawn.
	firstTurns []int
}{
	"erc4626": {contract: "PlainVault", name: "Plain Dollar Vault", symbol: "vPLAIN", turns: plainTurns},
	"erc7540": {contract: "RedeemVault", name: "Queued Dollar Vault", symbol: "vQUEUE", turns: redeemTurns},
	"lagoon-v0.6": {contract: "LagoonVault", name: "Lagoon Dollar Vault", symbol: "vLAGOON", turns: lagoonTurns,
		firstTurns: []int{0, 1, 0, 8, 9, 2, 3, 4, 3, 8, 9, 5}},
	"yo": {contract: "YoVault", name: "Yo Dollar Vault", symbol: "vYO", turns: yoTurns, spenders: []string{"gateway"}},
	"veda": {contract: "VedaVault", name: "Boring Dollar Vault", symbol: "vBORING", turns: vedaTurns,
		parts: []string{"teller", "accountant", "queue"}, spenders: []string{"queue"}},
	"midas": {contract: "MidasVault", name: "Midas Dollar Token", symbol: "mDEV", turns: midasTurns,
		parts: []string{"deposits", "redemptions", "feed"}, spenders: []string{"deposits", "redemptions"}},
}

// Custodian returns the address that deposits of Lagoon and Veda name as their referral, if they name one.
func Custodian() common.Address { return custodian.address }

// depositors is the number of users of a Play.
const depositors = 4

// Play drives the vault of a protocol. Its methods must not be called concurrently. What happens follows from the seed
// and the state of the chain.
type Play struct {
	*Protocol
	chain *chain
	rng   *rand.Rand
	users []account
	// manager deployed the contracts. It and the users belong to this vault only: other scenarios on the chain have their
	// own.
	manager account
	// at holds the contracts by name.
	at         map[string]*Contract
	firstTurns []int
	// requests are the 32-byte ids of requests, the newest last.
	requests []common.Hash
}

// turn is something that can happen in a vault, and how often it is tried.
type turn struct {
	weight int
	do     turnFunc
}

// DeployProtocol creates a vault that emits the events of a preset on the development chain, and returns a Play that
// drives it. The caller must close it.
func DeployProtocol(ctx context.Context, rpcURL, preset string, seed uint64) (*Play, error) {
	p, err := openPlay(ctx, rpcURL, &Protocol{Preset: preset}, seed, (*Play).setUp)
	return p, contracts.Discreet(err, rpcURL)
}

// OpenProtocol returns a Play that drives a vault deployed earlier. The caller must close it.
func OpenProtocol(ctx context.Context, rpcURL string, deployed *Protocol, seed uint64) (*Play, error) {
	p, err := openPlay(ctx, rpcURL, deployed, seed, (*Play).find)
	return p, contracts.Discreet(err, rpcURL)
}

func openPlay(
	ctx context.Context, rpcURL string, protocol *Protocol, seed uint64, begin func(*Play, context.Context) error,
) (*Play, error) {
	if _, ok := protocols[protocol.Preset]; !ok {
		return nil, fmt.Errorf("no contract emits the events of the preset %q: there are contracts for %s",
			protocol.Preset, strings.Join(Presets(), ", "))
	}
	c, err := dial(ctx, rpcURL)
	if err != nil {
		return nil, err
	}
	p := &Play{Protocol: protocol, chain: c, rng: rand.New(rand.NewPCG(seed, 1)), at: map[string]*Contract{},
		manager: newAccount("manager of " + protocol.Preset)}
	for i := range depositors {
		p.users = append(p.users, newAccount(fmt.Sprintf("user %d of %s", i, protocol.Preset)))
	}
	if err := begin(p, ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("begin with a vault of the preset %s: %w", protocol.Preset, err)
	}
	return p, nil
}

// Presets returns the presets for which a development chain can have a vault.
func Presets() []string { return slices.Sorted(maps.Keys(protocols)) }

// find binds the contracts of a vault that was deployed earlier.
func (p *Play) find(ctx context.Context) error {
	code, err := p.chain.CodeAt(ctx, p.Sources["vault"], nil)
	if err != nil {
		return fmt.Errorf("read the code of the vault: %w", err)
	}
	if p.chain.id.Uint64() != p.ChainID || len(code) == 0 {
		return fmt.Errorf("chain %s has no vault at %s: it is another chain than the one deployed to", p.chain.id,
			p.Sources["vault"])
	}
	p.at["asset"] = At(p.chain, "MockAsset", p.Asset)
	for role, address := range p.Sources {
		name := protocols[p.Preset].contract
		if role != "vault" {
			name = companions[role]
		}
		p.at[role] = At(p.chain, name, address)
	}
	return nil
}

// companions are a vault's additional contracts, by role.
var companions = map[string]string{"gateway": "YoGateway", "teller": "VedaTeller", "accountant": "VedaAccountant",
	"queue": "VedaQueue", "deposits": "MidasDeposits", "redemptions": "MidasRedemptions", "feed": "MidasFeed"}

// Close closes the connection to the chain.
func (p *Play) Close() { p.chain.Close() }

// setUp deploys the contracts, and gives all users the assets and allowances that the scenario needs.
func (p *Play) setUp(ctx context.Context) error {
	of := protocols[p.Preset]
	p.ChainID, p.Name, p.Symbol, p.Sources, p.firstTurns = p.chain.id.Uint64(), of.name, of.symbol,
		map[string]common.Address{}, of.firstTurns
	asset, err := p.deploy(ctx, "MockAsset", "Development Dollar", "DUSD", uint8(assetDecimals))
	if err != nil {
		return err
	}
	p.Asset = asset.address
	vault, err := p.deploy(ctx, of.contract, p.Name, p.Symbol, asset.address)
	if err != nil {
		return err
	}
	p.at["vault"], p.Sources["vault"] = vault, vault.address
	head, err := p.chain.BlockNumber(ctx)
	if err != nil {
		return fmt.Errorf("read the number of the newest block: %w", err)
	}
	p.StartBlock = head
	switch p.Preset {
	case "yo":
		gateway, err := p.deploy(ctx, companions["gateway"])
		if err != nil {
			return err
		}
		p.at["gateway"], p.Sources["gateway"] = gateway, gateway.address
	case "midas":
		p.Currency = &dollar
	}
	for _, role := range of.parts {
		address, err := read[common.Address](ctx, vault, role)
		if err != nil {
			return err
		}
		p.at[role], p.Sources[role] = At(p.chain, companions[role], address), address
	}
	spenders := []*Contract{vault}
	for _, role := range of.spenders {
		spenders = append(spenders, p.at[role])
	}
	for _, u := range append([]account{p.manager}, p.users...) {
		if err := p.send(ctx, u, asset, "mint", u.address, big.NewInt(1e15)); err != nil {
			return err
		}
		for _, s := range spenders {
			for _, token := range []*Contract{asset, vault} {
				if err := p.send(ctx, u, token, "approve", s.address, maxUint256); err != nil {
					return err
				}
			}
		}
	}
	p.at["asset"] = asset
	return nil
}

func (p *Play) deploy(ctx context.Context, name string, arguments ...any) (*Contract, error) {
	contract, _, err := p.chain.create(ctx, p.manager, name, arguments...)
	return contract, err
}

// send calls a contract in a transaction, and returns when it is mined.
func (p *Play) send(ctx context.Context, from account, to *Contract, method string, arguments ...any) error {
	receipt, err := p.chain.send(ctx, from, to.call(method, arguments...))
	if err != nil {
		return fmt.Errorf("call %s of %s: %w", method, to.name, err)
	}
	if method == "requestOnChainWithdraw" {
		for _, l := range receipt.Logs {
			if l.Address == to.address {
				p.requests = append(p.requests, l.Topics[1])
			}
		}
	}
	return nil
}

// Number reads a number about a user from the vault, such as a claimable amount.
func (p *Play) Number(ctx context.Context, method string, of common.Address) (*big.Int, error) {
	return read[*big.Int](ctx, p.at["vault"], method, of)
}

// Supply reads the vault's total supply.
func (p *Play) Supply(ctx context.Context) (*big.Int, error) {
	return read[*big.Int](ctx, p.at["vault"], "totalSupply")
}

// Users returns the users' addresses.
func (p *Play) Users() (out []common.Address) {
	for _, u := range p.users {
		out = append(out, u.address)
	}
	return out
}

// Steps takes n steps, each mined when it returns, and controls the chain's clock.
func (p *Play) Steps(ctx context.Context, n int) error {
	p.chain.blockTime = 1
	for range n {
		if err := p.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run takes one step every interval until ctx is done, and then returns nil. It does not change the chain's time. A
// step that fails is logged, and another one is taken; ten failures in a row end the run with the last error.
func (p *Play) Run(ctx context.Context, interval time.Duration, log *slog.Logger) error {
	return repeat(ctx, interval, "preset "+p.Preset, p.step, log)
}

// step takes the next of the first turns or, after that, a randomly drawn one. If the contracts reject a turn,
// another one is tried.
func (p *Play) step(ctx context.Context) error {
	turns := protocols[p.Preset].turns
	if len(p.firstTurns) > 0 {
		next := p.firstTurns[0]
		p.firstTurns = p.firstTurns[1:]
		return turns[next].do(ctx, p, p.users[0])
	}
	var err error
	for range 100 {
		t := draw(p.rng, turns, func(t turn) int { return t.weight })
		if err = t.do(ctx, p, p.users[p.rng.IntN(len(p.users))]); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the contracts refuse everything, the last time: %w", err)
}

// amount returns a random number of units of the asset.
func (p *Play) amount() *big.Int { return big.NewInt(1_000_000 + p.rng.Int64N(9_000_000_000)) }

// some returns a random part of a user's amount according to a function of the vault, or all of it one time in three.
// It fails if the amount is zero.
func (p *Play) some(ctx context.Context, method string, of common.Address) (*big.Int, error) {
	all, err := p.Number(ctx, method, of)
	if err != nil {
		return nil, err
	}
	if p.rng.IntN(3) > 0 {
		all = percent(all, 1+p.rng.Int64N(99))
	}
	if all.Sign() == 0 {
		return nil, fmt.Errorf("%s of %s is 0", method, of)
	}
	return all, nil
}
