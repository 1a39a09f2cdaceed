package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Number is a number in an answer that can be explained.
type Number struct {
	Field string // JSON pointer
	Value any    // as in the answer: a decimal or a time as text, a JSON number, nil
	// unexplained: the API refuses to explain it, because a vault of the preset erc4626 lacks it, or no single log has it.
	unexplained bool
}

// fromSeveralLogs are the fields of a vault of the preset erc4626 that the API does not explain.
var fromSeveralLogs = []string{"/totalAssets", "/totalSupply", "/stats/pendingWithdrawals"}

// ofMembers stands for the paths of a vault's users.
const ofMembers = "/vaults/*/users"

// numberFields lists the explainable fields of an answer by the last part of its path, or by the part before that. A *
// stands for every element of a list, an @ for the same addressed by the elements' addresses.
var numberFields = map[string][]string{
	"/users/": {"/totalDeposited", "/totalWithdrawn", "/firstSeen", "/holdings/deposits/*/_sum/assetAmount", "/holdings/deposits/*/_count",
		"/holdings/withdrawals/*/_sum/assetsEstimate", "/holdings/withdrawals/*/_sum/assetsClaimed", "/holdings/withdrawals/*/_count"},
	"/vaults/": {"/navPerShare", "/totalAssets", "/totalSupply", "/stats/userCount", "/stats/pendingWithdrawals"},
	ofMembers:  {"/@/totalDeposited", "/@/totalWithdrawn", "/@/firstSeen"},
	"/settlement/summary": {"/*/depositsToSweep/count", "/*/depositsToSweep/totalAmount",
		"/*/withdrawalsToFund/count", "/*/withdrawalsToFund/totalAmount"},
	"/queues/deposits":    {"/*/count"},
	"/queues/withdrawals": {"/meta/total"},
	"/partner/stats":      {"/totalDeposits", "/totalVolume", "/uniqueUsers", "/byVault/*/depositCount", "/byVault/*/totalVolume"},
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
	vault, _ := answer["data"].(Object)
	can, _ := vault["capabilities"].(Object)
	for i := range out {
		n := &out[i]
		n.unexplained = n.Value == nil && strings.HasSuffix(path, "/settlement/summary") ||
			can["queue"] == false && slices.Contains(fromSeveralLogs, n.Field)
	}
	return out
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
