package verify

import (
	"context"
	"embed"
	"fmt"
	"iter"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed sql/*.sql
var files embed.FS

// question reads an SQL file, and replaces each placeholder in braces: {table} with "{table}", "deposits".
func question(name string, words ...string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return strings.NewReplacer(words...).Replace(string(b))
}

// numbers are the parameters of a query.
type numbers = map[string]uint64

// texts runs a query with one text column and iterates over its rows.
func texts(ctx context.Context, conn driver.Conn, ask string, parameters numbers) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		rows, err := conn.Query(readmodel.Parameters(ctx, parameters), ask)
		if err != nil {
			yield("", err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			err := rows.Scan(&text)
			if !yield(text, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield("", err)
		}
	}
}

// excluding returns the condition that a row belongs to none of these vaults.
func excluding(vaults []common.Address) string {
	if len(vaults) == 0 {
		return "1"
	}
	list := make([]string, len(vaults))
	for i, a := range vaults {
		list[i] = fmt.Sprintf("unhex('%x')", a[:])
	}
	return "vault NOT IN (" + strings.Join(list, ", ") + ")"
}
