package e2e

import (
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/oracle"
)

// A document is the JSON document that `navlog-dev up` writes when everything is ready.
type document struct {
	API            string             `json:"api"`
	Ops            string             `json:"ops"`
	RPC            string             `json:"rpc"`
	Kafka          []string           `json:"kafka"`
	ClickHouse     string             `json:"clickhouse"`
	ClickHouseHTTP string             `json:"clickhouseHttp"`
	Postgres       string             `json:"postgres"`
	Contracts      devchain.Contracts `json:"contracts"`
	Partners       []oracle.Partner   `json:"partners"`
	Receiver       string             `json:"receiver"`
}
