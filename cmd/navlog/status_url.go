package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
	"github.com/navlog/navlog/schemas/printable"
)

// fetchStatus requests the status from the API at an address. It returns the document as received, and its known
// fields.
func fetchStatus(ctx context.Context, address string) (document json.RawMessage, st client.Status, err error) {
	public, err := api.New(api.Config{URL: address, Within: 10 * time.Second})
	if err != nil {
		return nil, st, err
	}
	answer, err := api.Read[json.RawMessage](public.Get(ctx, "/status", nil))
	if err != nil {
		return nil, st, err
	}
	if err := json.Unmarshal(answer.Data, &st); err != nil || st.ChainState == "" {
		return nil, st, fmt.Errorf("%s sent no status: is that the API of navlog?", address)
	}
	return answer.Data, st, nil
}

func writePublicStatus(w io.Writer, st client.Status) {
	row := func(name, value string) { cli.Fprintf(w, "%s\t%s\n", name, value) }
	row(fmt.Sprintf("CHAIN %d", st.ChainID), st.ChainState)
	if st.ChainReason != nil {
		row("reason", *st.ChainReason)
	}
	if st.FrozenReason != nil {
		row("frozen", *st.FrozenReason)
	}
	row("head", blockOrUnknown(st.HeadBlock))
	row("indexed", blockOrUnknown(st.IndexedBlock)+lag(st.LagBlocks, st.LagSeconds))
	row("final", blockOrUnknown(st.FinalBlock))
	if st.ProvenTo != nil {
		row("proven", "up to "+blockOrUnknown(st.ProvenTo))
	}
	if st.LogsWithoutData != nil && *st.LogsWithoutData > 0 {
		row("without data", fmt.Sprintf("%s, of which only the length and the hash of the data are kept",
			printable.Count(*st.LogsWithoutData, "log")))
	}
	if st.EtaSeconds != nil && *st.EtaSeconds > 0 {
		row("left", (time.Duration(*st.EtaSeconds) * time.Second).String())
	}
	if st.Generation != nil && st.Seq != nil {
		row("served from", fmt.Sprintf("generation %d, seq %d, block time %s", *st.Generation, *st.Seq, clock(st.IndexedAt)))
	}
	if len(st.Endpoints) > 0 {
		fmt.Fprintln(w, "\nENDPOINT\tCALLS\tUNITS")
	}
	for i, e := range st.Endpoints {
		cli.Fprintf(w, "%d\t%d\t%d\n", i+1, e.Calls, e.Units)
	}
	fmt.Fprintln(w, "\nPROGRAM\tSTATE")
	for _, name := range slices.Sorted(maps.Keys(st.Programs)) {
		row(name, st.Programs[name])
	}
	cli.Section(w, st.Vaults, "VAULT\tNAME\tLAST NAV\tSTATE\tWARNINGS", func(v client.VaultStatus) []any {
		return []any{v.Address, v.Name, clock(v.LastNavAt), v.State, strings.Join(v.Warnings, "; ")}
	})
}

func blockOrUnknown(number *string) string {
	if number == nil {
		return "unknown"
	}
	return "block " + *number
}
