package query

import (
	"os"
	"strings"
	"testing"
)

func TestZZDump(t *testing.T) {
	dir := os.Getenv("ZZ")
	if dir == "" {
		t.Skip()
	}
	r := strings.NewReplacer("{db:Identifier}", "navlog_g1", "{seq:UInt64}", "toUInt64("+os.Getenv("ZZSEQ")+")", "{block:UInt64}", "toUInt64(18446744073709551615)", "{now:UInt64}", "toUInt64("+os.Getenv("ZZNOW")+")",
		"{limit:UInt64}", "20", "{scan:UInt64}", "80", "{user:String}", "'"+os.Getenv("ZZUSER")+"'", "{vault:String}", "''", "{status:String}", "''",
		"{partner:UInt32}", "toUInt32(1)", "{from:Int64}", "0", "{to:Int64}", "4000000000", "{swept:UInt64}", "toUInt64(100000)")
	put := func(name, q string, off string) {
		os.WriteFile(dir+"/"+name+".sql", []byte(r.Replace(strings.ReplaceAll(q, "{offset:UInt64}", off))), 0o644)
	}
	put("user", sqlUser, "0")
	put("user_deposits", sqlUserDeposits, "0")
	put("user_deposits_count", sqlUserDepsCount, "0")
	put("user_withdrawals", sqlWithdrawals, "0")
	put("user_withdrawals_count", sqlWithdrawCount, "0")
	put("partner_deposits", sqlPartnerDeps, "0")
	put("partner_deposits_deep", sqlPartnerDeps, "5000")
	put("partner_stats_newest", sqlPartnerStatsNewest, "0")
	put("partner_stats", sqlPartnerStats, "0")
	put("partner_users", sqlPartnerUsers, "0")
	put("queue_newest", sqlQueueNewest, "0")
	put("queue", sqlQueue, "0")
	put("queued_newest", sqlQueuedNewest, "0")
	put("queued", sqlQueued, "0")
	put("vault_stats", sqlVaultStats, "0")
	put("vault_users_newest", sqlVaultUsersNewest, "0")
	put("latest_navs", sqlLatestNavs, "0")
	put("navs", sqlNavs, "0")
	put("swept_to", sqlSweptTo, "0")
	put("unswept_total", sqlUnsweptTotal, "0")
	put("unswept", sqlUnswept, "0")
	put("indexed_block", strings.ReplaceAll(sqlIndexedBlock, "{scan:UInt64}", "1000"), "0")
	put("cursor", sqlCursor, "0")
	put("cursor_of", sqlCursorOf["deposits"], "0")
	put("users_count_newest", sqlUsersCountNewest, "0")
	put("users_as_of", sqlUsersAsOf[[2]string{"totalDeposited", "desc"}], "0")
	put("users_as_of_count", sqlUsersAsOfCnt, "0")
	for by := range map[string]int{"firstSeen": 0, "totalDeposited": 0, "totalWithdrawn": 0} {
		for _, o := range []string{"asc", "desc"} {
			put("users_"+by+"_"+o, sqlUsers[[2]string{by, o}], "0")
			put("users_"+by+"_"+o+"_deep", strings.ReplaceAll(sqlUsers[[2]string{by, o}], "{scan:UInt64}", "40080"), "10000")
		}
	}
}
