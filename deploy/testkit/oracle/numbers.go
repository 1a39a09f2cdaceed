package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Number is a number in an answer that can be explained.
type Number struct {
	Field string // JSON pointer
	Value any    // as in the answer: a decimal or a time as text, a JSON number, nil
}

// ofMembers stands for the paths of a vault's users.
const ofMembers = "/vaults/*/users"

// numberFields lists the explainable fields of an answer by the last part of its path, or by the part before that. A *
// stands for every element of a list, an @ for the same addressed by the elements' addresses.
var numberFields = map[string][]string{
	"/users/": {"/totalDeposited", "/totalWithdrawn", "/firstSeen", "/holdings/deposits/*/_sum/assetAmount",
		"/holdings/deposits/*/_count", "/holdings/withdrawals/*/_sum/assetsEstimate",
		"/holdings/withdrawals/*/_sum/assetsClaimed", "/holdings/withdrawals/*/_count"},
	"/vaults/": {"/navPerShare", "/totalAssets", "/totalSupply", "/stats/userCount", "/stats/pendingWithdrawals"},
	ofMembers:  {"/@/totalDeposited", "/@/totalWithdrawn", "/@/firstSeen"},
	"/settlement/summary": {"/*/depositsToSweep/count", "/*/depositsToSweep/totalAmount",
		"/*/withdrawalsToFund/count", "/*/withdrawalsToFund/totalAmount"},
	"/queues/deposits":    {"/*/count"},
	"/queues/withdrawals": {"/meta/total"},
	"/partner/stats": {"/totalDeposits", "/totalVolume", "/uniqueUsers", "/byVault/*/depositCount",
		"/byVault/*/totalVolume"},
}

// Explained reports whether the answer at a path, which may have a query, has numbers that can be explained according
// to the API document.
func Explained(path string) bool { return fieldsOf(path) != nil }

func fieldsOf(path string) []string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/api/v1"), "?")
	if strings.HasPrefix(path, "/vaults/") && strings.HasSuffix(path, "/users") {
		return numberFields[ofMembers]
	}
	if fields, ok := numberFields[path]; ok || strings.Count(path, "/") != 2 {
		return fields
	}
	return numberFields[path[:strings.LastIndex(path, "/")+1]]
}

// Numbers returns the explainable numbers of the answer at a path.
func Numbers(path string, answer Object) (out []Number) {
	for _, field := range fieldsOf(path) {
		at := answer["data"]
		parts := strings.Split(field, "/")[1:]
		if parts[0] == "meta" {
			at, parts = answer["meta"], parts[1:]
		}
		out = append(out, numbersAt(at, strings.TrimSuffix(field, strings.Join(parts, "/")), parts)...)
	}
	return out
}

// explains reports whether the API explains a number of the answer to a question. It does not if a vault with a preset
// lacks it, or if no single logs have it.
func (q *Question) explains(n Number) bool {
	switch path := strings.TrimPrefix(q.path, api); {
	case path == "/settlement/summary":
		i, _ := strconv.Atoi(strings.Split(n.Field, "/")[1])
		return q.state.ordered()[i].preset == ""
	case path == "/queues/withdrawals":
		filter := q.query.Get("vault")
		return !slices.ContainsFunc(q.state.ordered(), func(v *vaultState) bool {
			return v.preset == erc7540 && (filter == "" || v.address == common.HexToAddress(filter))
		})
	case slices.Contains([]string{"/totalAssets", "/totalSupply", "/stats/pendingWithdrawals"}, n.Field):
		v := q.state.vaults[common.HexToAddress(path[strings.LastIndex(path, "/")+1:])]
		return v == nil || v.preset == ""
	}
	return true
}

// numbersAt follows the parts of a pointer from a value; before is the pointer of the value itself.
func numbersAt(value any, before string, parts []string) (out []Number) {
	if len(parts) == 0 {
		return []Number{{Field: strings.TrimSuffix(before, "/"), Value: value}}
	}
	if parts[0] != "*" && parts[0] != "@" {
		return numbersAt(value.(Object)[parts[0]], before+parts[0]+"/", parts[1:])
	}
	for i, one := range value.([]any) {
		place := fmt.Sprint(i)
		if parts[0] == "@" {
			place = one.(Object)["address"].(string)
		}
		out = append(out, numbersAt(one, before+place+"/", parts[1:])...)
	}
	return out
}
