package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/printable"
)

type vaultDetectCmd struct {
	Address string  `arg:"" help:"Address of the contract."`
	Blocks  uint64  `default:"10000" range:"1 to 1000000" help:"How many of the newest blocks are searched for its logs, 1 to 1000000."`
	To      *uint64 `placeholder:"BLOCK" help:"Last block that is searched (default: the newest one)."`
	cli.NodeFlags
	cli.Output
}

// detected is what was found out about a contract.
type detected struct {
	Address        string      `json:"address"`
	CodeBytes      int         `json:"codeBytes"`
	Implementation string      `json:"implementation,omitempty"` // of a proxy, by EIP-1967
	From           uint64      `json:"from"`
	To             uint64      `json:"to"`
	Logs           int         `json:"logs"`
	Topics         int         `json:"topics"` // number of different first topics
	Presets        []candidate `json:"presets"`
	Proposal       string      `json:"proposal"` // empty: no preset fits
}

// candidate is a preset and the evidence for it.
type candidate struct {
	Preset string   `json:"preset"`
	Known  int      `json:"known"`       // logs with an effect
	Wrong  int      `json:"quarantined"` // logs of its events with another layout
	Events []string `json:"events"`      // those with logs
}

// Slots of EIP-1967: keccak256("eip1967.proxy.implementation") - 1, and the one for beacons.
var (
	slotImplementation = common.HexToHash("0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc")
	slotBeacon         = common.HexToHash("0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50")
)

func (cmd vaultDetectCmd) Run(ctx context.Context, s *cli.Streams) error {
	address, err := vaultAddress(cmd.Address)
	if err != nil {
		return err
	}
	client, url, err := cmd.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := cmd.detect(ctx, client, address)
	if err != nil {
		return cli.Unreachable.With(contracts.Discreet(err, url))
	}
	err = cmd.Print(s.Out, d, func(w io.Writer) { d.write(w, cmd.nodeFlag(url)) })
	if err == nil && d.CodeBytes == 0 {
		err = fmt.Errorf("%s has no code: it is not a contract on this chain", d.Address)
	}
	return err
}

// nodeFlag returns the flag with which another command reads from the same node; a URL that may contain a key is not
// repeated.
func (cmd vaultDetectCmd) nodeFlag(url string) string {
	switch {
	case cmd.RPCFile != "":
		return " --rpc-file " + cmd.RPCFile
	case cmd.RPC == "":
		return "" // the environment has it
	case strings.TrimRight(url, "/") == contracts.EndpointName(url):
		return " --rpc " + url
	}
	return " --rpc URL"
}

func (cmd vaultDetectCmd) detect(
	ctx context.Context, client *ethclient.Client, address common.Address,
) (*detected, error) {
	d := &detected{Address: address.Hex(), Presets: []candidate{}}
	code, err := client.CodeAt(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("request the code: %w", err)
	}
	if d.CodeBytes = len(code); d.CodeBytes == 0 {
		return d, nil
	}
	for _, slot := range []common.Hash{slotImplementation, slotBeacon} {
		word, err := client.StorageAt(ctx, address, slot, nil)
		if err != nil {
			return nil, fmt.Errorf("request the slot of a proxy: %w", err)
		}
		if behind := common.BytesToAddress(word); behind != (common.Address{}) && d.Implementation == "" {
			d.Implementation = behind.Hex()
		}
	}
	if cmd.To == nil {
		if d.To, err = client.BlockNumber(ctx); err != nil {
			return nil, fmt.Errorf("request the newest block: %w", err)
		}
	} else {
		d.To = *cmd.To
	}
	d.From = d.To - min(d.To, cmd.Blocks-1)
	var logs []types.Log
	err = cli.ReadLogs(ctx, client, []common.Address{address}, d.From, d.To, func(some []types.Log, _ uint64) error {
		logs = append(logs, some...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, d.compareWithPresets(logs)
}

// compareWithPresets compares logs with every preset, as those of its source `vault`.
func (d *detected) compareWithPresets(logs []types.Log) error {
	topics := map[common.Hash]bool{}
	for _, l := range logs {
		if len(l.Topics) > 0 {
			topics[l.Topics[0]] = true
		}
	}
	d.Logs, d.Topics = len(logs), len(topics)
	for _, name := range mapping.Presets() {
		m, err := mapping.Preset(name)
		if err != nil {
			return err
		}
		role, ok := m.Role("vault")
		if !ok {
			continue
		}
		v, c := m.Compile(), candidate{Preset: name, Events: []string{}}
		for _, tx := range cli.Transactions(logs) {
			c.add(v, role, tx)
		}
		slices.Sort(c.Events)
		d.Presets = append(d.Presets, c)
	}
	slices.SortStableFunc(d.Presets, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.Events), len(a.Events)), cmp.Compare(b.Known, a.Known), cmp.Compare(a.Wrong, b.Wrong))
	})
	if len(d.Presets) > 0 && d.Presets[0].Known > 0 {
		d.Proposal = d.Presets[0].Preset
	}
	return nil
}

// add counts the logs of a transaction.
func (c *candidate) add(v *mapping.Vault, role uint8, tx []types.Log) {
	logs := make([]mapping.Log, len(tx))
	for i := range tx {
		l := &tx[i]
		logs[i] = mapping.Log{Role: role, Place: mapping.Place(l.BlockNumber, uint32(l.Index)), Topics: l.Topics,
			Data: l.Data}
		if known := v.Event(&logs[i]); known != nil && !slices.Contains(c.Events, known.Name) {
			c.Events = append(c.Events, known.Name)
		}
	}
	effects, err := v.Map(logs, nil)
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	c.Wrong += len(quarantine)
	for i := range effects {
		if i == 0 || effects[i].Log != effects[i-1].Log {
			c.Known++
		}
	}
}

// write prints what was found. node is the flag that names the node.
func (d *detected) write(w io.Writer, node string) {
	if d.CodeBytes == 0 {
		return
	}
	cli.Fprintf(w, "%s has %s of code.\n", d.Address, printable.Count(d.CodeBytes, "byte"))
	if d.Implementation != "" {
		cli.Fprintf(w, "It is a proxy (EIP-1967); behind it is %s.\n", d.Implementation)
	}
	cli.Fprintf(w, "Blocks %d to %d have %s of it, of %s.\n", d.From, d.To, printable.Count(d.Logs, "log"),
		printable.Count(d.Topics, "event"))
	for _, c := range d.Presets {
		if len(c.Events) > 0 {
			cli.Fprintf(w, "%s: %s with an effect, %d that differ from their declaration; events: %s\n", c.Preset,
				printable.Count(c.Known, "log"), c.Wrong, strings.Join(c.Events, ", "))
		}
	}
	if d.Proposal == "" {
		cli.Fprintf(w, "No preset fits: give more blocks (--blocks), or write a mapping.\n")
		return
	}
	cli.Fprintf(w, "Proposed: %s. Check the effects of the logs: navlog mapping try %s --address %s --from %d --to "+
		"%d%s\n",
		d.Proposal, d.Proposal, d.Address, d.From, d.To, node)
}
