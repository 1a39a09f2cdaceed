package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
)

// publicStatus is what /status of the API tells everybody; the contract is
// schemas/openapi. What is not known is nil.
type publicStatus struct {
	ChainID      uint64     `json:"chainId"`
	ChainState   string     `json:"chainState"`
	FrozenReason *string    `json:"frozenReason"`
	Generation   *int32     `json:"generation"`
	Seq          *uint64    `json:"seq"`
	IndexedBlock *string    `json:"indexedBlock"`
	IndexedAt    *time.Time `json:"indexedAt"`
	HeadBlock    *string    `json:"headBlock"`
	FinalBlock   *string    `json:"finalBlock"`
	ProvenTo     *string    `json:"provenTo"`
	LagBlocks    *uint64    `json:"lagBlocks"`
	LagSeconds   *uint64    `json:"lagSeconds"`
	ETASeconds   *uint64    `json:"etaSeconds"`
	Endpoints    []struct {
		Calls uint64 `json:"calls"`
		Units uint64 `json:"units"`
	} `json:"endpoints"`
	Programs map[string]string `json:"programs"`
	Vaults   []struct {
		Address   string     `json:"address"`
		Name      string     `json:"name"`
		LastNavAt *time.Time `json:"lastNavAt"`
		State     string     `json:"state"`
	} `json:"vaults"`
}

// maxStatus bounds what is read of an answer, in bytes.
const maxStatus = 1 << 20

// fetchStatus asks the API at base for its status: the document as it came, and
// what is known of it.
func fetchStatus(ctx context.Context, base string) (json.RawMessage, publicStatus, error) {
	var st publicStatus
	u, err := apiAddress(base)
	if err != nil {
		return nil, st, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	address := u.JoinPath("status").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, st, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, st, cli.Unreachable.With(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err != nil {
		return nil, st, fmt.Errorf("read %s: %w", address, err)
	}
	var answer struct {
		OK   bool            `json:"ok"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !answer.OK {
		return nil, st, fmt.Errorf("%s answered %d and no status: is that the API of navlog?", address, response.StatusCode)
	}
	if err := json.Unmarshal(answer.Data, &st); err != nil {
		return nil, st, fmt.Errorf("read the status of %s: %w", address, err)
	}
	return answer.Data, st, nil
}

func (st publicStatus) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "CHAIN %d\t%s\n", st.ChainID, st.ChainState)
	if st.FrozenReason != nil {
		fmt.Fprintf(w, "frozen\t%s\n", *st.FrozenReason)
	}
	fmt.Fprintf(w, "head\t%s\nindexed\t%s%s\nfinal\t%s\n", blockOrUnknown(st.HeadBlock), blockOrUnknown(st.IndexedBlock), lag(st.LagBlocks, st.LagSeconds), blockOrUnknown(st.FinalBlock))
	if st.ProvenTo != nil {
		fmt.Fprintf(w, "proven\tup to %s\n", blockOrUnknown(st.ProvenTo))
	}
	if st.ETASeconds != nil && *st.ETASeconds > 0 {
		fmt.Fprintf(w, "left\t%s\n", time.Duration(*st.ETASeconds)*time.Second)
	}
	if st.Generation != nil && st.Seq != nil {
		fmt.Fprintf(w, "answers from\tgeneration %d, seq %d, block time %s\n", *st.Generation, *st.Seq, clock(st.IndexedAt))
	}
	if len(st.Endpoints) > 0 {
		fmt.Fprintln(w, "\nENDPOINT\tCALLS\tUNITS")
	}
	for i, e := range st.Endpoints {
		fmt.Fprintf(w, "%d\t%d\t%d\n", i+1, e.Calls, e.Units)
	}
	fmt.Fprintln(w, "\nPROGRAM\tSTATE")
	for _, name := range slices.Sorted(maps.Keys(st.Programs)) {
		fmt.Fprintf(w, "%s\t%s\n", name, st.Programs[name])
	}
	if len(st.Vaults) > 0 {
		fmt.Fprintln(w, "\nVAULT\tNAME\tLAST NAV\tSTATE")
	}
	for _, v := range st.Vaults {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Address, strings.ToValidUTF8(v.Name, "?"), clock(v.LastNavAt), v.State)
	}
	return w.Flush()
}

func blockOrUnknown(number *string) string {
	if number == nil {
		return "unknown"
	}
	return "block " + *number
}
